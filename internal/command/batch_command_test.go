package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The command in the report names the flags, and no secret.
func TestTypedCommand(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"t.csv -j 8 --verify|go test ./...":        "troupe batch t.csv -j 8 --verify 'go test ./...'",
		"-e KEY=s3cr3t t.csv":                      "troupe batch -e 'KEY=***' t.csv",
		"--env=KEY=s3cr3t --env K=s3cr3t=x t.csv":  "troupe batch '--env=KEY=***' --env 'K=***' t.csv",
		"-env KEY=s3cr3t -e=K=s3cr3t t.csv":        "troupe batch -env 'KEY=***' '-e=K=***' t.csv",
		"-webhook https://x/s3cr3t --approvals":    "troupe batch -webhook '***' --approvals",
		"-webhook=https://x/s3cr3t":                "troupe batch '-webhook=***'",
		"-nats nats://s3cr3t@h t.csv":              "troupe batch -nats nats://h t.csv",
		"-nats=u:s3cr3t@h:1,tls://%s3cr3t@k":       "troupe batch -nats=h:1,tls://k",
		"--setup --env --webhook https://x/s3cr3t": "troupe batch --setup --env --webhook '***'",
		"--approvals -- --env":                     "troupe batch --approvals -- --env",
		`-settings {"a":"s3cr3t"} t.csv`:           "troupe batch -settings '{…}' t.csv",
		"--webhook https://u:s3cr3t@x/?a=s3cr3t":   "troupe batch --webhook '***'",
		"t.csv --nats nats://s3cr3t@h:4222":        "troupe batch t.csv --nats nats://h:4222",
		"t.csv --nats=nats://u:s3cr3t@h":           "troupe batch t.csv --nats=nats://h",
		`--mcp-config {"a":"s3cr3t"} t.csv`:        "troupe batch --mcp-config '{…}' t.csv",
		`--settings={"a":"s3cr3t"} t.csv`:          "troupe batch '--settings={…}' t.csv",
	} {
		flags, last, quoted := strings.Cut(args, "|")
		words := strings.Fields(flags)
		if quoted {
			words = append(words, last)
		}
		assert.Equal(t, want, typed(words))
	}
}

// The report and the summary say what ran.
func TestTheReportSaysWhatRan(t *testing.T) {
	t.Parallel()
	file, out := taskFile(t, "names.jsonl", `{"prompt":"one"}`), t.TempDir()
	w := newWorld()
	require.Equal(t, exitOK, w.run("batch", file, "-a", "scripted", "--verify", "true", "-m", "haiku", "-O", out), w.err)
	summary, err := os.ReadFile(filepath.Join(out, "summary.json"))
	require.NoError(t, err)
	for _, text := range []string{`"title": "names.jsonl"`, "--verify true -m haiku", `"model": "haiku"`, `"verifier": "true"`, `"rounds": 1`, `"attempts": 1`, `"began": "`, `"worked": "`} {
		assert.Contains(t, string(summary), text)
	}
	page, err := os.ReadFile(filepath.Join(out, "report.html"))
	require.NoError(t, err)
	for _, text := range []string{"<h1>names.jsonl</h1>", "haiku", "verified by <code>true</code>", "<span>verified</span>"} {
		assert.Contains(t, string(page), text)
	}
	assert.NotContains(t, string(page), "<span>requeued</span>", "a column without anything in it")
}
