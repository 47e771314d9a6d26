//go:build tools

// Package tools names the old kubectl that the script "build" makes, so that go.mod and
// go.sum pin everything it needs. This package is never compiled itself.
package tools

import (
	_ "k8s.io/kubernetes/cmd/kubectl"
)
