package fast

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// Environment variables of an agent that misbehaves.
const (
	FaultEnv  = "BENCH_FAULT"  // one of the faults
	ReportEnv = "BENCH_REPORT" // a file, to which the agent appends a line for each thing that it sees
)

// Faults of an agent that is a process. Each but Dies is a case in "When something goes wrong" of
// docs/migration.md.
const (
	Exits   = "exits"   // ends with exit code 0 in the middle of a turn
	Null    = "null"    // writes null and a number
	Leaves  = "leaves"  // leaves a process behind
	Mute    = "mute"    // never answers initialize, or anything else
	Twice   = "twice"   // sends the id of a hook's request twice
	Asks    = "asks"    // asks for a permission, and reports whether there is an answer
	Hooked  = "hooked"  // calls a hook, and reports the answer
	Streams = "streams" // writes until it is interrupted or ended
	Env     = "env"     // reports whether it has the host's PATH
	Args    = "args"    // reports whether Secret is in its arguments
	Dies    = "dies"    // is killed in the first turn of its first process
)

// Secret is what must not be in the arguments of [Args].
const Secret = "a-secret-of-the-benchmark"

// Lines of the report. Killed and Left are followed by a number.
const (
	Answered    = "answer"
	Unanswered  = "no answer"
	Interrupted = "interrupt"
	Closed      = "stdin closed"
	Terminated  = "SIGTERM"
	Left        = "left"   // the id of the process
	Killed      = "killed" // the time, in nanoseconds since 1970
	Present     = "present"
	Absent      = "absent"
)

// Patience is how long [Asks] waits for its answer.
const Patience = 3 * time.Second

// report appends a line to the report.
func report(words ...any) {
	f, err := os.OpenFile(os.Getenv(ReportEnv), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return // who reads it sees that nothing is there
	}
	_, _ = fmt.Fprintln(f, words...)
	_ = f.Close()
}

// misbehave is a turn with the fault.
func (a *talk) misbehave() error {
	var err error
	switch a.fault {
	case Exits:
		if _, err = a.out.Write(a.event()); err == nil {
			os.Exit(0)
		}
	case Null:
		_, err = io.WriteString(a.out, "null\n7\n")
	case Leaves:
		cmd := exec.Command("setsid", "sleep", "60")
		if err = cmd.Start(); err == nil {
			report(Left, cmd.Process.Pid)
		}
	case Twice:
		for range 2 {
			a.seq = 0 // so the id is the same
			if err = a.askHook(); err != nil {
				break
			}
		}
	case Asks:
		return a.waits()
	case Hooked:
		err = a.reportsHook()
	case Streams:
		return a.streams()
	case Env:
		report(presence(os.Getenv("PATH") != ""))
	case Args:
		report(presence(strings.Contains(strings.Join(os.Args, " "), Secret)))
	case Dies:
		err = a.dies()
	}
	if err != nil {
		return err
	}
	return a.result("success", "the turn is over")
}

func presence(there bool) string {
	if there {
		return Present
	}
	return Absent
}

// waits asks for a permission, and ends the turn after [Patience] without an answer.
func (a *talk) waits() error {
	id, err := a.request(`{"subtype":"can_use_tool",` + toolUse + `,"display_name":"Bash","input":{"command":"true"},"permission_suggestions":[]}`)
	if err != nil {
		return err
	}
	answered := make(chan error, 1)
	go func() {
		l, err := a.answer(id)
		if err == nil {
			report(Answered, l.Response.Subtype, string(l.Response.Response), l.Response.Error)
		}
		answered <- err
	}()
	select {
	case err := <-answered:
		if err != nil {
			return err
		}
		return a.result("success", "the turn is over")
	case <-time.After(Patience):
		report(Unanswered)
		if err := a.result("success", "the turn is over"); err != nil {
			return err
		}
		if err := <-answered; !errors.Is(err, io.EOF) {
			return err
		}
		return nil
	}
}

// reportsHook calls the hook and reports its answer.
func (a *talk) reportsHook() error {
	id, err := a.request(`{"subtype":"hook_callback","callback_id":"` + a.hook + `","tool_use_id":"toolu_bench","input":{"hook_event_name":"PreToolUse",` + toolUse + `,"tool_input":{"command":"true"}}}`)
	if err != nil {
		return err
	}
	l, err := a.answer(id)
	if err == nil {
		report(Answered, l.Response.Subtype, string(l.Response.Response), l.Response.Error)
	}
	return err
}

// streams writes events until the host interrupts the turn. It does not end when stdin is
// closed, as an agent does not whose command still runs.
func (a *talk) streams() error {
	signal.Ignore(syscall.SIGPIPE)
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	interrupted, closed := make(chan string), make(chan struct{})
	go func() {
		defer close(closed)
		for {
			line, err := a.in.ReadString('\n')
			if err != nil {
				report(Closed)
				return
			}
			if strings.Contains(line, `"interrupt"`) {
				_, rest, _ := strings.Cut(line, `"request_id":"`)
				id, _, _ := strings.Cut(rest, `"`)
				report(Interrupted)
				interrupted <- id
			}
		}
	}()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	event, broken := a.event(), false
	for {
		select {
		case id := <-interrupted:
			if err := a.printf(`{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":{}}}`, id); err != nil {
				return err
			}
			if err := a.result("error_during_execution", "interrupted"); err != nil {
				return err
			}
			<-closed
			os.Exit(0)
		case <-term:
			report(Terminated)
			os.Exit(143)
		case <-tick.C:
			if !broken {
				_, err := a.out.Write(event)
				broken = err != nil
			}
		}
	}
}

// dies is killed, if no process of the session was before.
func (a *talk) dies() error {
	before, _ := os.ReadFile(os.Getenv(ReportEnv)) // the first process finds no report
	if len(before) > 0 {
		return nil
	}
	err := a.printf(`{"type":"assistant","message":{"id":"msg_1","type":"message","role":"assistant","model":"fast","content":[{"type":"text","text":"begun"}]},"parent_tool_use_id":null,"session_id":%q,"uuid":"00000000-0000-4000-8000-000000000001"}`, a.session)
	if err != nil {
		return err
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	report(Killed, time.Now().UnixNano())
	if err := self.Kill(); err != nil {
		return err
	}
	select {} // until the signal is there
}
