// Prints the status that kstatus, by which Flux and Helm wait, computes for each object on standard input. The version is the one
// that Helm v4.3.1 requires.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func main() {
	in := json.NewDecoder(os.Stdin)
	for in.More() {
		var raw json.RawMessage
		obj := &unstructured.Unstructured{}
		err := in.Decode(&raw)
		if err == nil {
			err = obj.UnmarshalJSON(raw) // keeps whole numbers as such
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		result, err := status.Compute(obj)
		if err != nil {
			fmt.Println("Error:", err)
			continue
		}
		fmt.Printf("%s: %s\n", result.Status, result.Message)
	}
}
