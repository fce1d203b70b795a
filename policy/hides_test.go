package policy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/policy"
)

func TestHiding(t *testing.T) {
	t.Parallel()
	p, err := policy.Compile(policy.Rules{
		Deny: []string{"Read(.env)", "Read(secrets/**)", "Read(/conf/*.key)", "Read(~/.ssh/**)", "Read(~/.netrc)", "Read(//etc/[s]hadow)", "Edit(./src/**)", "Bash(rm:*)", "Write(w)"},
		Cwd:  "/repo", Home: "/home/u",
		Resolve: func(path string) (string, error) { // two links
			path = strings.Replace(path, "/home/u/.ssh", "/mnt/keys", 1)
			return strings.Replace(path, "/home/u/.netrc", "/mnt/[net]", 1), nil
		},
	})
	require.NoError(t, err)
	hides := p.Hiding()
	for path, want := range map[string][2]bool{ // here, below
		"/":                     {false, true},
		"/repo":                 {false, true},
		"/repo/.env":            {true, true},
		"/repo/a/b/.ENV":        {true, true},
		"/repo/.env/x":          {true, true},
		"/repo/a":               {false, true},
		"/repo/secrets":         {true, true},
		"/repo/secrets/a/b":     {true, true},
		"/repo/conf/a.key":      {true, true},
		"/repo/src/a.go":        {false, true}, // .env could be in it
		"/home":                 {false, true},
		"/home/u":               {false, true},
		"/home/u/.ssh":          {true, true},
		"/home/u/.ssh/id":       {true, true},
		"/home/u/src":           {false, false},
		"/home/v":               {false, false},
		"/mnt":                  {false, true},
		"/mnt/keys":             {true, true},
		"/mnt/keys/id":          {true, true},
		"/mnt/[net]":            {true, true},
		"/mnt/n":                {false, false},
		"/etc":                  {false, true},
		"/etc/shadow":           {true, true},
		"/etc/passwd":           {false, false},
		"/usr":                  {false, false},
		"/repository/.env":      {false, false},
		"/home/u/.ssh.old/keys": {false, false},
	} {
		here, below := hides(path)
		assert.Equal(t, want, [2]bool{here, below}, path)
	}
	all, err := policy.Compile(policy.Rules{Deny: []string{"Read", "Bash"}})
	require.NoError(t, err)
	here, below := all.Hiding()("/etc/passwd")
	assert.False(t, here || below, "rules about tools hide no path")
}
