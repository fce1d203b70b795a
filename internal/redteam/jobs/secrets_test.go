package jobs

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
)

var packs = regexp.MustCompile(`<script type="application/octet-stream" id="[^"]*">([^<]*)</script>`)

// wholeReport is the text of a report, and of the transcripts in it.
func wholeReport(t *testing.T, out string) string {
	t.Helper()
	page := readAll(t, filepath.Join(out, "report.html"))
	text := page
	for _, m := range packs.FindAllStringSubmatch(page, -1) {
		raw, err := base64.RawURLEncoding.DecodeString(m[1])
		require.NoError(t, err)
		z, err := gzip.NewReader(bytes.NewReader(raw))
		require.NoError(t, err)
		b, err := io.ReadAll(z)
		require.NoError(t, err)
		text += "\n" + string(b)
	}
	return text
}

// The report is the file that people publish: "it replaces the secrets that the job knows".
func TestReportHidesSecrets(t *testing.T) {
	const key = "5up3r-s3cr3t-0f-th3-h0st"
	pem := "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n-----END PRIVATE KEY-----"
	for name, c := range map[string]struct {
		env    map[string]string
		says   string   // what the agent writes
		writes string   // what it leaves in its worktree
		hidden []string // must not be in the report
	}{
		"as it is":        {map[string]string{"MY_TOKEN": key}, "it is " + key, "", []string{key}},
		"with a newline":  {map[string]string{"MY_TOKEN": key + "\n"}, "it is " + key + ", sir", "", []string{key}},
		"with spaces":     {map[string]string{"MY_TOKEN": " " + key + " "}, "it is(" + key + ")", "", []string{key}},
		"lines in a diff": {map[string]string{"DEPLOY_KEY": pem}, "done", pem + "\n", []string{"MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "BKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"}},
	} {
		t.Run(name, func(t *testing.T) {
			out := t.TempDir()
			o := acting(func() error {
				if c.writes == "" {
					return nil
				}
				return os.WriteFile(filepath.Join(out, "workspaces", "t", "1", "key.pem"), []byte(c.writes), 0o600)
			}, scripted.Text(c.says))
			o.Env = c.env
			r := collect(t, fleet.Job{Tasks: []fleet.Task{{ID: "t", Prompt: "x"}}, Options: o, Out: out, Attempts: 1,
				Workspace: &fleet.Workspace{Kind: fleet.WorkspaceWorktree, From: repository(t)}})["t"]
			require.Equal(t, fleet.Accepted, r.Status, r.Error)
			text := wholeReport(t, out)
			for _, secret := range c.hidden {
				if i := strings.Index(text, secret); i >= 0 {
					t.Errorf("the report has it: %.100q", text[max(i-30, 0):])
				}
			}
		})
	}
}
