package embedded

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/agent-troupe/troupe/agent"
)

// longestSleep is how many seconds a command may begin with doing nothing (observed on Claude
// Code 2.1.329: 20 are waited for, and 25 are not).
const longestSleep = 20

// blockedSleep says why a command is not run that begins with a long sleep; "": it is.
func blockedSleep(in agent.Object, background bool) string {
	if apart, _ := in["run_in_background"].(bool); apart || !background {
		return ""
	}
	command := str(in, "command")
	file, err := parsed(command)
	if err != nil {
		return ""
	}
	var parts []string
	var add func(s *syntax.Stmt)
	add = func(s *syntax.Stmt) {
		if list, is := s.Cmd.(*syntax.BinaryCmd); is {
			add(list.X)
			add(list.Y)
			return
		}
		text := strings.TrimSpace(command[s.Pos().Offset():min(int(s.End().Offset()), len(command))])
		parts = append(parts, strings.TrimSpace(strings.TrimRight(text, ";&")))
	}
	for _, s := range file.Stmts {
		add(s)
	}
	if len(parts) == 0 {
		return ""
	}
	words := strings.Fields(parts[0])
	if len(words) != 2 || words[0] != "sleep" {
		return ""
	}
	seconds, err := strconv.Atoi(words[1])
	if err != nil || seconds <= longestSleep {
		return ""
	}
	what := "standalone sleep " + words[1]
	if len(parts) > 1 {
		what = "sleep " + words[1] + " followed by: " + strings.Join(parts[1:], " ")
	}
	return "Blocked: " + what + ". To wait for a condition, use Monitor with an until-loop (e.g. `until <check>; do sleep 2; done`). To wait for a command you started, use run_in_background: true. Do not chain shorter sleeps to work around this block."
}
