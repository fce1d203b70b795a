package peers

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/conformance/modelapi"
)

// Texts that the task's calls have to bring.
const (
	fileText  = "a line of the file\n"
	shellText = "hi"
	lastText  = "The file has lines, and the shell says hi. That is all."
)

// call is a tool of an agent with its input for a file.
type call func(file string) modelapi.Block

// tool is a call with one argument of this name.
func tool(name, argument, format string) call {
	return func(file string) modelapi.Block {
		input := modelapi.Args{argument: format}
		if strings.Contains(format, "%") {
			input[argument] = fmt.Sprintf(format, file)
		}
		if name == "bash" || name == "Bash" {
			input["description"] = "say hi"
		}
		return modelapi.ToolUse(name, input)
	}
}

// script gives the server the task in words of the agent: NAME, and NAME_busy, whose last
// answer takes so long.
func (p *peer) script(s *modelapi.Server, hold time.Duration) {
	last := modelapi.Reply{Blocks: []modelapi.Block{modelapi.Text(lastText)}}
	slow := last
	slow.Chunks = len(lastText) / 2
	slow.ChunkDelay = hold / time.Duration(slow.Chunks)
	for name, reply := range map[string]modelapi.Reply{p.scenario(): last, p.scenario() + busy: slow} {
		s.Script(name, step(p.read), step(p.shell), titled(modelapi.Always(reply)))
	}
}

const busy = "_busy"

func (p *peer) scenario() string { return strings.ReplaceAll(p.name, "-", "_") }

func step(c call) modelapi.Step {
	return titled(func(in modelapi.Call) modelapi.Reply {
		return modelapi.Reply{Blocks: []modelapi.Block{c(in.Arg)}}
	})
}

// titled answers requests that offer no tools with a text: those for a title of the session.
func titled(s modelapi.Step) modelapi.Step {
	return func(in modelapi.Call) modelapi.Reply {
		if len(in.Request.Tools) == 0 {
			return modelapi.Reply{Blocks: []modelapi.Block{modelapi.Text("A title")}}
		}
		return s(in)
	}
}

// prompt is the task for the session of this directory.
func (p *peer) prompt(dir, suffix string) string {
	return fmt.Sprintf("Read the file, let the shell say hi, and report. [[scn:%s%s %s]]", p.scenario(), suffix, fileIn(dir))
}

func fileIn(dir string) string { return filepath.Join(dir, "file.txt") }

// traffic is what the server has seen of one session.
type traffic struct {
	first, last time.Time // of the first request of the task, and of the last
	firstBytes  int
	steps       int
}

// seen reads the log of the server: the traffic of the session of each directory, and the
// bytes of all requests, those for titles included. It fails if a session has not done its task.
func seen(log []modelapi.Request, dirs []string) (all []traffic, bytes int, err error) {
	all = make([]traffic, len(dirs))
	sessions := make(map[string]int, len(dirs)) // by the argument of the marker
	for i, dir := range dirs {
		sessions[fileIn(dir)] = i
	}
	var offered []string
	for _, r := range log {
		if r.Endpoint == modelapi.Unknown {
			continue
		}
		bytes += len(r.Body)
		i, known := sessions[r.Marker.Arg]
		if !known || len(r.Tools) == 0 {
			continue
		}
		t := &all[i]
		offered = r.Tools
		if r.Marker.Step == 0 && t.steps == 0 {
			t.first, t.firstBytes = r.At, len(r.Body)
		}
		if r.Marker.Step != t.steps {
			continue // a repetition
		}
		if want := []string{"", strings.TrimSpace(fileText), shellText}[min(t.steps, 2)]; !brought(r, want) {
			return nil, 0, fmt.Errorf("call %d did not bring %q but %q; the agent offers %v", t.steps, want, lastResult(r), offered)
		}
		t.last = r.At
		t.steps++
	}
	for _, t := range all {
		if t.steps < 3 {
			if offered == nil {
				return nil, 0, errors.New("it made no request of the task")
			}
			return nil, 0, fmt.Errorf("it made %d of 3 calls of the model; it offers %v", t.steps, offered)
		}
	}
	return all, bytes, nil
}

// brought reports whether the last result of a call has the words.
func brought(r modelapi.Request, words string) bool {
	return words == "" || strings.Contains(lastResult(r), words)
}

func lastResult(r modelapi.Request) string {
	results := r.ToolResults()
	if len(results) == 0 {
		return ""
	}
	return results[len(results)-1].Text
}
