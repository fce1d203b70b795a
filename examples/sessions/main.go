// Command sessions shows the sessions that Claude Code keeps on disk. No agent runs.
//
//	go run ./examples/sessions                     # a home that the example makes
//	go run ./examples/sessions -home "$HOME"       # your own; nothing is changed
//
// Look for: the list, a conversation as the vendor's SDK shows it, and that a rewind
// makes the agent resume another branch than the newest.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/transcript"
)

func main() {
	home := flag.String("home", "", "a home directory; empty: one that the example makes")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *home); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, home string) (err error) {
	if home == "" {
		made, err := makeHome()
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(made) }()
		home = made
	}
	sessions, err := sdk.Sessions(&sdk.Options{
		Backend: sdk.Claude(sdk.ClaudeConfig{}), Env: map[string]string{"HOME": home}, UnsetEnv: []string{"CLAUDE_CONFIG_DIR"},
	})
	if err != nil {
		return err
	}
	list, err := sessions.List(ctx, transcript.ListOptions{Limit: 5})
	if err != nil {
		return err
	}
	for _, s := range list {
		printf(out, "%s  %q\n", s.SessionID, s.Summary)
	}
	if len(list) == 0 {
		return nil
	}
	return show(ctx, out, sessions, list[0].SessionID)
}

// show prints both views of a session.
func show(ctx context.Context, out io.Writer, sessions *transcript.Sessions, id string) (err error) {
	file, err := sessions.Open(ctx, id)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if n, reports := file.Damaged(); n > 0 {
		printf(out, "-- damaged lines: %d; line %d is %s\n", n, reports[0].Line, reports[0].Kind)
	}
	printf(out, "-- as the vendor's SDK shows it:\n")
	for m, err := range file.Shown(transcript.ShownOptions{}) {
		if err != nil {
			return err
		}
		printf(out, "%s: %q\n", m.Type, m.Text())
	}
	resumed, err := file.Resumed()
	if errors.Is(err, transcript.ErrNoConversation) {
		printf(out, "-- the agent would not resume it\n")
		return nil
	}
	if err != nil {
		return err
	}
	printf(out, "-- as the agent would resume it:\n")
	for m, err := range resumed.Messages() {
		if err != nil {
			return err
		}
		printf(out, "%s: %q\n", m.Type, m.Text())
	}
	if resumed.NewerBranch != "" {
		printf(out, "-- a newer branch ends with message %s: resume with ResumeSessionAt to continue there\n", resumed.NewerBranch)
	}
	return nil
}

func printf(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }
