// Command agent is a badly behaved child for the tests of package osproc. Its
// first argument is a token by which the tests find it from outside; it is
// handed down to all descendants. None of them lives longer than two minutes.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

func init() { runtime.LockOSThread() } // main runs on the main thread

func main() {
	token, mode, args := os.Args[1], os.Args[2], os.Args[3:]
	arg := func(i int) int {
		n, err := strconv.Atoi(args[i])
		check(err)
		return n
	}
	start := func(attr *syscall.SysProcAttr, mode ...string) {
		cmd := exec.Command("/proc/self/exe", append([]string{token}, mode...)...)
		cmd.Stdout, cmd.SysProcAttr = os.Stdout, attr
		check(cmd.Start())
	}
	inSession := &syscall.SysProcAttr{Setsid: true}

	switch mode {
	case "exit": // with a code
		os.Exit(arg(0))
	case "die": // of a signal
		check(syscall.Kill(os.Getpid(), syscall.Signal(arg(0))))
		wait()
	case "burst": // of bytes, then exit at once
		_, _ = os.Stdout.Write(bytes.Repeat([]byte("x"), arg(0)))
		_, _ = os.Stdout.WriteString("END")
	case "echo": // until stdin ends
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "env":
		for _, kv := range os.Environ() {
			fmt.Println(kv)
		}
	case "args": // from the second on, and the working directory
		fmt.Printf("%q\n", args)
		wd, _ := os.Getwd()
		fmt.Println(wd)
	case "wait":
		ready()
	case "stubborn": // ignores what a polite host sends
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		ready()
	case "tidy": // on SIGTERM ends its child, in a session of its own, and then itself
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		child := exec.Command("/proc/self/exe", token, "wait")
		child.Stdout, child.SysProcAttr = os.Stdout, inSession
		check(child.Start())
		<-term
		check(child.Process.Kill())
		_ = child.Wait()
	case "child": // in the same group
		start(nil, "wait")
		wait()
	case "session": // a child in a session of its own, which holds stdout
		start(inSession, "wait")
		wait()
	case "leave": // the same, but exit once the child is there
		start(inSession, "wait", "left behind")
		time.Sleep(50 * time.Millisecond)
	case "orphan": // the child of a child that exits, in a session of its own
		start(inSession, "leave")
		wait()
	case "hop": // each generation starts the next in a new session and exits
		if arg(0) > 0 {
			if arg(0)%50 == 0 {
				ready0()
			}
			start(inSession, "hop", strconv.Itoa(arg(0)-1))
			os.Exit(0)
		}
		wait()
	case "hopper":
		start(inSession, "hop", "3000")
		wait()
	case "breeder": // goes on starting children, in a session of its own
		start(inSession, "breed")
		wait()
	case "breed":
		for i := range 2000 {
			start(inSession, "wait")
			if i == 3 {
				ready0()
			}
		}
		wait()
	case "headless": // a child whose main thread is dead, in a session of its own
		start(inSession, "behead")
		wait()
	case "behead":
		go ready()
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0) // of this thread alone
	case "daemons": // one to keep, with a child of its own, and one not to
		start(inSession, "session", "keep")
		start(inSession, "wait", "drop")
		wait()
	default:
		panic("unknown mode " + mode)
	}
}

func ready() {
	ready0()
	wait()
}

func ready0() { _, _ = os.Stdout.WriteString("ready\n") }

func wait() {
	time.Sleep(2 * time.Minute)
	os.Exit(99)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
