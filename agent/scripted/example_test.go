package scripted_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
)

// An agent played from YAML, over any pair of streams.
func Example() {
	script, err := scripted.Parse([]byte(`
session_id: 00000000-0000-4000-8000-000000000001
turns:
- when: hello
  steps:
  - text: Hello yourself.
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	host := strings.NewReader(`{"type":"user","message":{"role":"user","content":"hello"}}` + "\n")
	var out bytes.Buffer
	exit := scripted.New(scripted.WithScript(script)).Serve(agent.Launch{Seed: 1}, agent.Stdio(host, &out, os.Stderr))
	for line := range strings.Lines(out.String()) {
		fmt.Println(line[:strings.Index(line, ",")])
	}
	fmt.Println(exit.Code)
	// Output:
	// {"type":"system"
	// {"type":"assistant"
	// {"type":"result"
	// 0
}

// A mistake in a script says where it is.
func ExampleParse() {
	_, err := scripted.Parse([]byte("turns:\n- steps:\n  - shell: {cmd: ls}\n"))
	fmt.Println(err)
	// Output:
	// script:3:13: unknown field "cmd"
}
