// Package kruise is OpenKruise's own end-to-end suite as one program, to be pointed at Everynode.
package kruise

import (
	"flag"
	"os"
	"testing"

	"github.com/onsi/ginkgo"
	"github.com/onsi/gomega"
	"github.com/openkruise/kruise/apis"
	_ "github.com/openkruise/kruise/test/e2e/apps"
	"github.com/openkruise/kruise/test/e2e/framework"
	"k8s.io/client-go/kubernetes/scheme"
)

func TestMain(m *testing.M) {
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	flag.Parse()
	framework.AfterReadingAllFlags(&framework.TestContext)
	os.Exit(m.Run())
}

func TestSuite(t *testing.T) {
	if err := apis.AddToScheme(scheme.Scheme); err != nil {
		t.Fatal(err)
	}
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.RunSpecs(t, "OpenKruise")
}
