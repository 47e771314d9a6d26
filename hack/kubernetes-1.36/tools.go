//go:build tools

// Package tools names the programs of the release before that the script "build" makes, so that
// go.mod and go.sum pin everything they need. It is never compiled itself.
package tools

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
)
