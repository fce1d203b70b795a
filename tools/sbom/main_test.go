package main

import (
	"bytes"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBill(t *testing.T) {
	t.Parallel()
	info := &debug.BuildInfo{
		GoVersion: "go1.26.8", Path: "example.com/m/cmd/prog", Main: debug.Module{Path: "example.com/m", Version: "(devel)"},
		Settings: []debug.BuildSetting{{Key: "GOOS", Value: "linux"}, {Key: "CGO_ENABLED", Value: "0"}, {Key: "vcs.revision", Value: "abc"}},
		Deps: []*debug.Module{
			{Path: "example.com/a", Version: "v1.0.0+incompatible", Sum: "h1:a="},
			{Path: "example.com/root", Version: "v0.0.0", Replace: &debug.Module{Path: "../..", Version: "(devel)"}},
			{Path: "example.com/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.2.0", Sum: "h1:f="}},
		},
	}
	var out bytes.Buffer
	require.NoError(t, write(&out, info, "v0.1.0", "2026-11-27T14:27:09Z"))
	assert.JSONEq(t, `{"bomFormat":"CycloneDX","specVersion":"1.6","version":1,
		"metadata":{"timestamp":"2026-11-27T14:27:09Z","component":{"type":"application","bom-ref":"pkg:golang/example.com/m@v0.1.0","name":"prog","version":"v0.1.0",
			"purl":"pkg:golang/example.com/m@v0.1.0","properties":[{"name":"go:GOOS","value":"linux"},{"name":"go:vcs.revision","value":"abc"}]}},
		"components":[
			{"type":"library","bom-ref":"pkg:golang/std@1.26.8","name":"std","version":"1.26.8","purl":"pkg:golang/std@1.26.8"},
			{"type":"library","bom-ref":"pkg:golang/example.com/a@v1.0.0%2Bincompatible","name":"example.com/a","version":"v1.0.0+incompatible","purl":"pkg:golang/example.com/a@v1.0.0%2Bincompatible","properties":[{"name":"go:sum","value":"h1:a="}]},
			{"type":"library","bom-ref":"pkg:golang/example.com/root@v0.1.0","name":"example.com/root","version":"v0.1.0","purl":"pkg:golang/example.com/root@v0.1.0"},
			{"type":"library","bom-ref":"pkg:golang/example.com/fork@v1.2.0","name":"example.com/fork","version":"v1.2.0","purl":"pkg:golang/example.com/fork@v1.2.0","properties":[{"name":"go:sum","value":"h1:f="}]}]}`, out.String())
	require.Error(t, write(&out, &debug.BuildInfo{}, "v0.1.0", ""))
}
