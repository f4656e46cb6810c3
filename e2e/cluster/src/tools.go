//go:build tools

// Package tools names the commands of other modules that build.sh builds.
package tools

import _ "helm.sh/helm/v3/cmd/helm"
