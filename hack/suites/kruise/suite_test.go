// Package kruise is OpenKruise's own end-to-end suite as one program, to be pointed at Everynode.
package kruise

import (
	"flag"
	"os"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"github.com/openkruise/kruise/apis"
	_ "github.com/openkruise/kruise/test/e2e/apps/v1alpha1"
	_ "github.com/openkruise/kruise/test/e2e/apps/v1beta1"
	"github.com/openkruise/kruise/test/e2e/framework/common"
	"k8s.io/client-go/kubernetes/scheme"
)

func TestMain(m *testing.M) {
	common.RegisterCommonFlags(flag.CommandLine)
	common.RegisterClusterFlags(flag.CommandLine)
	flag.Parse()
	common.AfterReadingAllFlags(&common.TestContext)
	os.Exit(m.Run())
}

func TestSuite(t *testing.T) {
	if err := apis.AddToScheme(scheme.Scheme); err != nil {
		t.Fatal(err)
	}
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.RunSpecs(t, "OpenKruise")
}
