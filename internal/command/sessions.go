package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript"
	"github.com/agent-troupe/troupe/transcript/export"
)

// restSettings is what the arguments of troupe sessions say.
type restSettings struct {
	people, resumed     bool
	limit, offset       int
	subagent, store     string
	upTo, title, format string
	remove              bool
}

// restCommand is one of the commands of troupe sessions.
type restCommand struct {
	name, args, help string
	least, most      int // words after the command
	flags            []flagSpec
	run              func(ctx context.Context, c *console, s *settings, all *transcript.Sessions) error
}

func restCommands() []restCommand {
	number := func(field func(*settings) *int) setting {
		return func(s *settings, v string) error {
			n, err := strconv.Atoi(v)
			if err != nil || n < 0 {
				return fmt.Errorf("%q is not a number", v)
			}
			*field(s) = n
			return nil
		}
	}
	asJSON := jsonFlag()
	resumed := flagSpec{name: "resumed", help: "the conversation as the agent would resume it, not as the vendor's SDK shows it", set: on(func(s *settings) *bool { return &s.rest.resumed })}
	subagent := flagSpec{name: "subagent", arg: "ID", help: "the conversation of a subagent", set: text(func(s *settings) *string { return &s.rest.subagent })}
	return []restCommand{
		{"list", "", "list the sessions, the last changed first", 0, 0, []flagSpec{
			{name: "limit", short: "n", arg: "N", help: "the most sessions; default: all", set: number(func(s *settings) *int { return &s.rest.limit })},
			{name: "offset", arg: "N", help: "leave out the first N", set: number(func(s *settings) *int { return &s.rest.offset })},
			{name: "people", help: "leave out sessions that programs made", set: on(func(s *settings) *bool { return &s.rest.people })},
			asJSON,
		}, listSessions},
		{"show", "ID", "print the conversation of a session", 1, 1, []flagSpec{resumed, subagent, asJSON}, showSession},
		{"fork", "ID", "copy a session, and print the new id", 1, 1, []flagSpec{
			{name: "up-to", arg: "UUID", help: "the last message of the copy; default: all", set: text(func(s *settings) *string { return &s.rest.upTo })},
			{name: "title", arg: "TEXT", help: "the title of the copy", set: text(func(s *settings) *string { return &s.rest.title })},
		}, forkSession},
		{"rename", "ID TITLE", "set the title of a session", 2, 1 << 20, nil, func(ctx context.Context, _ *console, s *settings, all *transcript.Sessions) error {
			return all.Rename(ctx, s.words[0], strings.Join(s.words[1:], " "))
		}},
		{"tag", "ID [TAG]", "set the tag of a session", 1, 1 << 20, []flagSpec{
			{name: "remove", help: "remove the tag", set: on(func(s *settings) *bool { return &s.rest.remove })},
		}, tagSession},
		{"rewind", "ID UUID", "restore the files that tools changed to their state at a prompt", 2, 2, []flagSpec{
			{name: "yes", short: "y", help: "change the files; without it they are only listed", set: on(func(s *settings) *bool { return &s.yes })},
			asJSON,
		}, rewindSession},
		{"delete", "ID", "delete a session", 1, 1, []flagSpec{
			{name: "yes", short: "y", help: "required: nothing brings a session back", set: on(func(s *settings) *bool { return &s.yes })},
		}, deleteSession},
		{"import", "ID", "copy what --store lacks of a session into it", 1, 1, nil, importSession},
		{"export", "ID", "print a session as Markdown or HTML", 1, 1, []flagSpec{
			flagSpec{name: "format", short: "f", arg: "FORM", help: "markdown or html; default: markdown"}.of(func(s *settings) *string { return &s.rest.format }, "markdown", "html"),
			resumed, subagent,
		}, exportSession},
	}
}

// restFlags are the flags of all commands of troupe sessions.
func restFlags() []flagSpec {
	return []flagSpec{
		flagSpec{name: "agent", short: "a", arg: "NAME", help: "whose sessions: claude, qoder or embedded; default: claude"}.of(func(s *settings) *string { return &s.agent }, "claude", "qoder", embedded.Name),
		{name: "cwd", short: "C", arg: "DIR", help: "only the sessions of this directory and of the other worktrees of its repository; default: of all directories", set: text(func(s *settings) *string { return &s.opts.Cwd })},
		{name: "store", arg: "DIR", help: "the sessions of the session store in this directory, for --cwd or else the working directory; default: those of this machine", set: text(func(s *settings) *string { return &s.rest.store })},
		remarksFlag(),
		helpFlag(),
	}
}

func sessionsPage() page {
	var b strings.Builder
	b.WriteString(`Usage: troupe sessions COMMAND [flags]

Works on the sessions that agents keep on disk, or on those of a session store. No agent is started.
Do not fork, rewind or delete a session while an agent runs it. ID may be the beginning of an id, at
least four characters of it, that no other session has.

Commands:
`)
	groups := []flagGroup{{"All commands", restFlags()}}
	for _, r := range restCommands() {
		fmt.Fprintf(&b, "  %-32s%s\n", strings.TrimSpace(r.name+" "+r.args), r.help)
		if len(r.flags) > 0 {
			groups = append(groups, flagGroup{"troupe sessions " + r.name, r.flags})
		}
	}
	return page{b.String(), groups, `
Exit codes: 0 success, 1 there is no such session or it could not be read or changed, 2 a mistake in
the arguments, 7 the output could not be written.
`}
}

// sessions is troupe sessions.
func (a *app) sessions() *cobra.Command {
	help := sessionsPage()
	all := a.command(a.settings(), "sessions COMMAND", "list, show, fork, rename, tag, delete or export sessions on disk", page{text: help.String()}, nil)
	a.made[all] = made{a.made[all].settings, help}
	all.Annotations = map[string]string{flagsAfter: "troupe sessions COMMAND [flags]"}
	var names []string
	for _, r := range restCommands() {
		names = append(names, r.name)
		one := a.command(a.settings(), strings.TrimSpace(r.name+" "+r.args), r.help, page{groups: []flagGroup{{flags: restFlags()}, {flags: r.flags}}}, r.command)
		one.SetHelpFunc(nil) // that of all
		all.AddCommand(one)
	}
	all.RunE = func(_ *cobra.Command, words []string) error {
		switch {
		case len(words) == 0:
			a.console.say("%s", help.String())
			a.code = exitUsage
			return nil
		case words[0] == "help":
			return all.Help()
		}
		fix := "the commands are " + strings.Join(names, ", ")
		if near := nearest(words[0], names); near != "" {
			fix = "did you mean troupe sessions " + near + "?"
		}
		return &usageError{fmt.Sprintf("there is no command %q of troupe sessions", words[0]), fix}
	}
	return all
}

// command is troupe sessions with the name of r.
func (r *restCommand) command(ctx context.Context, p process, c *console, s *settings) int {
	if n := len(s.words); n < r.least || n > r.most {
		return c.usage(&usageError{fmt.Sprintf("troupe sessions %s takes %s", r.name, cmp.Or(r.args, "no words")), "troupe help sessions"})
	}
	ctx, stop := untilSignal(ctx, p)
	defer stop()
	return s.runRest(ctx, p, c, r)
}

// transcripts are the sessions that the flags of a command of troupe sessions are about.
func (s *settings) transcripts(p process, command string) (*transcript.Sessions, error) {
	s.opts.Backend = sdk.Claude(sdk.ClaudeConfig{})
	switch s.agent {
	case "qoder":
		s.opts.Backend = sdk.Qoder(sdk.QoderConfig{})
	case embedded.Name: // its model is not asked
		s.opts.Backend = embedded.New(embedded.Config{Model: model.NewOpenAI(model.OpenAIConfig{}), Name: "none"})
	}
	s.opts.CleanEnv, s.opts.Env = true, map[string]string{}
	for _, name := range []string{"HOME", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_PROJECT_DIR_NAME", "QODER_CONFIG_DIR", "XDG_STATE_HOME", "TROUPE_EMBEDDED_DIR"} {
		s.opts.Env[name] = p.getenv(name)
	}
	if err := s.openStore(command); err != nil {
		return nil, err
	}
	return sdk.Sessions(&s.opts)
}

func (s *settings) runRest(ctx context.Context, p process, c *console, r *restCommand) int {
	all, err := s.transcripts(p, r.name)
	if err != nil {
		return c.usage(err)
	}
	defer c.working("reading sessions")()
	if r.least > 0 {
		s.words[0], err = fullID(ctx, all, s.words[0])
	}
	if err == nil {
		err = r.run(ctx, c, s, all)
	}
	var usage *usageError
	var output *outputError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		return c.usage(err)
	case errors.As(err, &output):
		return c.outputLost(err)
	case errors.Is(err, fs.ErrNotExist):
		c.note("%s", printable(err.Error())+"; troupe sessions list shows all")
	default:
		c.note("%s", printable(err.Error()))
	}
	return exitResult
}

func listSessions(ctx context.Context, c *console, s *settings, all *transcript.Sessions) error {
	list, err := all.List(ctx, transcript.ListOptions{Limit: s.rest.limit, Offset: s.rest.offset, SkipProgrammatic: s.rest.people})
	if err != nil {
		return err
	}
	if s.asJSON {
		if list == nil {
			list = []transcript.Info{} // not null
		}
		out, err := asJSONText(list)
		if err != nil {
			return err
		}
		return c.write(out)
	}
	if len(list) == 0 && s.rest.offset == 0 {
		c.remark("%s has no sessions here; --agent lists those of another agent, --store those of a session store", cmp.Or(s.agent, "claude"))
	}
	for i := range list {
		if err := c.line([]byte(sessionLine(&list[i]))); err != nil {
			return err
		}
	}
	return nil
}

// sessionLine is the line of a session in a list.
func sessionLine(info *transcript.Info) string {
	mark := ""
	if info.Tag != "" {
		mark = " [" + info.Tag + "]"
	}
	if info.Archived != nil && *info.Archived {
		mark += " (archived)"
	}
	return printable(oneLine(fmt.Sprintf("%s  %s  %s%s", info.SessionID, info.LastModified.Local().Format(time.DateTime), brief(titleOf(info)), mark)))
}

// titleOf is the title of a session. The text of a recovery, which the agent notes as the last
// prompt, is skipped.
func titleOf(info *transcript.Info) string {
	if info.FirstPrompt != "" && strings.HasPrefix(info.Summary, session.RecoveryOpening) {
		return info.FirstPrompt
	}
	return info.Summary
}

// oneLine joins the lines of a text.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' }), " ")
}

// conversation opens the conversation that the arguments name, and says on stderr what is
// wrong with the file. The caller closes it.
func (s *settings) conversation(ctx context.Context, c *console, all *transcript.Sessions) (iter.Seq2[*transcript.Message, error], io.Closer, error) {
	id := s.words[0]
	var f *transcript.File
	var err error
	if s.rest.subagent != "" {
		f, err = all.OpenSubagent(ctx, id, s.rest.subagent)
	} else {
		f, err = all.Open(ctx, id)
	}
	if err != nil {
		return nil, nil, err
	}
	if n, reports := f.Damaged(); n > 0 {
		c.remark("%d of %s of %s cannot be read; the first one is line %d (%s)", n, shown.Count(f.Lines(), "line"), cmp.Or(f.Path, "the stored session"), reports[0].Line, reports[0].Kind)
	}
	switch {
	case s.rest.subagent != "":
		return all.SubagentMessages(ctx, id, s.rest.subagent, transcript.ShownOptions{}), f, nil
	case !s.rest.resumed:
		if f.HasMark() {
			c.remark("the file begins with a byte order mark, and its first line is left out, as the vendor's SDK does; --resumed shows it as the agent reads it")
		}
		if r, err := f.Resumed(); err == nil { // cycles are reported in every format
			noteHealed(c, r)
		}
		return f.Shown(transcript.ShownOptions{}), f, nil
	}
	r, err := f.Resumed()
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	if r.NewerBranch != "" {
		c.remark("the agent would resume an older branch; a newer one ends with message %s", r.NewerBranch)
	}
	noteHealed(c, r)
	return r.Messages(), f, nil
}

// noteHealed reports messages whose parents do not form a chain.
func noteHealed(c *console, r *transcript.Resumption) {
	if r.Circles > 0 {
		c.remark("%s of parents in the file, which leads back to its own beginning in a circle; each is read from its first message", shown.Count(r.Circles, "chain"))
	}
	for _, h := range r.Healed {
		c.remark("the parent of message %s is not in the file, or leads back to it in a circle; the agent joins it to message %s", printable(h.UUID), printable(h.JoinedTo))
	}
}

func showSession(ctx context.Context, c *console, s *settings, all *transcript.Sessions) error {
	messages, f, err := s.conversation(ctx, c, all)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	for m, err := range messages {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if s.asJSON {
			raw, err := json.Marshal(m)
			if err != nil {
				return err
			}
			if err := c.line(raw); err != nil {
				return err
			}
			continue
		}
		if err := showMessage(c, m); err != nil {
			return err
		}
	}
	return nil
}

func showMessage(c *console, m *transcript.Message) error {
	content, err := m.Content()
	if err != nil {
		c.note("%s", printable(err.Error()))
		return nil
	}
	for _, b := range content {
		var row string
		switch b := b.(type) {
		case *protocol.TextBlock:
			row = m.Type + ": " + b.Text
		case *protocol.ToolUseBlock:
			row = "→ " + b.Name + subject(b.Input)
		case *protocol.ToolResultBlock:
			row = "← " + brief(b.Content.Text())
			if b.IsError {
				row = "✗ " + brief(b.Content.Text())
			}
		default:
			continue
		}
		if err := c.line([]byte(printable(row))); err != nil {
			return err
		}
	}
	return nil
}

func forkSession(ctx context.Context, c *console, s *settings, all *transcript.Sessions) error {
	id, err := all.Fork(ctx, s.words[0], transcript.ForkOptions{UpTo: s.rest.upTo, Title: s.rest.title})
	if err != nil {
		return err
	}
	return c.line([]byte(id))
}

func tagSession(ctx context.Context, _ *console, s *settings, all *transcript.Sessions) error {
	switch tag := strings.Join(s.words[1:], " "); {
	case s.rest.remove && tag != "":
		return &usageError{"--remove takes no tag", "leave one of them out"}
	case s.rest.remove:
		return all.Untag(ctx, s.words[0])
	case tag == "":
		return &usageError{"there is no tag", "write troupe sessions tag ID TAG, or --remove"}
	default:
		return all.Tag(ctx, s.words[0], tag)
	}
}

func rewindSession(ctx context.Context, c *console, s *settings, all *transcript.Sessions) error {
	r, err := all.Rewind(ctx, s.words[0], s.words[1], transcript.RewindOptions{DryRun: !s.yes})
	if err != nil {
		return err
	}
	if s.asJSON {
		text, err := asJSONText(rewoundOf(r, s.yes))
		if err != nil {
			return err
		}
		return c.write(text)
	}
	for _, f := range r.Files {
		row := fmt.Sprintf("%-7s %s", f.Action, f.Path)
		if f.Why != "" {
			row += ": " + f.Why
		}
		if err := c.line([]byte(printable(oneLine(row)))); err != nil {
			return err
		}
	}
	if len(r.Commands) > 0 {
		c.remark("what these commands changed cannot be restored:")
		for _, command := range r.Commands {
			c.aside("  %s\n", brief(command))
		}
	}
	if !s.yes {
		c.remark("nothing was changed; --yes restores the files")
	}
	return nil
}

// rewound is the JSON form of a rewind.
type rewound struct {
	Changed bool          `json:"changed"` // false: the files are only listed
	Files   []rewoundFile `json:"files"`
	// Commands are shell commands whose changes cannot be restored.
	Commands []string `json:"commands"`
}

type rewoundFile struct {
	Path   string                  `json:"path"`
	Action transcript.RewindAction `json:"action"`
	Why    string                  `json:"why,omitempty"`
}

func rewoundOf(r *transcript.Rewound, changed bool) rewound {
	out := rewound{Changed: changed, Files: []rewoundFile{}, Commands: append([]string{}, r.Commands...)}
	for _, f := range r.Files {
		out.Files = append(out.Files, rewoundFile{f.Path, f.Action, f.Why})
	}
	return out
}

func deleteSession(ctx context.Context, _ *console, s *settings, all *transcript.Sessions) error {
	if !s.yes {
		return &usageError{"nothing brings a deleted session back", "add --yes"}
	}
	if s.rest.store != "" { // a store deletes also what it does not have
		f, err := all.Open(ctx, s.words[0])
		if err != nil {
			return err
		}
		_ = f.Close() // it was only read
	}
	return all.Delete(ctx, s.words[0])
}

func exportSession(ctx context.Context, c *console, s *settings, all *transcript.Sessions) error {
	info, err := all.Info(ctx, s.words[0])
	if err != nil {
		return err
	}
	messages, f, err := s.conversation(ctx, c, all)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	form := export.Markdown
	if s.rest.format == "html" {
		form = export.HTML
	}
	return form(stdout{c}, info, messages)
}

// stdout is the console's stdout as a writer, whose errors say so.
type stdout struct{ c *console }

func (w stdout) Write(p []byte) (int, error) {
	if err := w.c.write(string(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}
