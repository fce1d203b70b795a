package jobs

import (
	"path/filepath"
	"strings"
	"testing"
)

// Setup, Verify and Teardown are commands on the host, whatever the Spawner of the agents
// is; a verifier such as go test then runs what the agent has written. Where agents are in
// containers somebody has to say so: the documents, or a warning of the job.
func TestVerifierOfAnAgentInAContainer(t *testing.T) {
	said := false
	for _, name := range []string{"SECURITY.md", "docs/fleets.md", "docs/deployment.md", "docs/getting-started.md", "docs/hooks.md"} {
		text := strings.ToLower(strings.Join(strings.Fields(readAll(t, filepath.Join("..", "..", "..", name))), " "))
		for _, part := range strings.Split(text, ". ") {
			if (strings.Contains(part, "verif") || strings.Contains(part, "setup")) && (strings.Contains(part, "container") || strings.Contains(part, "spawner")) && strings.Contains(part, "host") {
				said = true
			}
		}
	}
	if !said {
		t.Errorf("no document says that verifiers and setups run on the host, also for agents in containers")
	}
}
