package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/agent-troupe/troupe/agent"
)

// document is a text file as Write and Edit see it.
type document struct {
	content []byte // as it is stored
	text    string // with LF at the ends of lines; a byte order mark is U+FEFF
	wide    bool   // it is UTF-16LE
	crlf    bool   // it is written with CRLF
	mode    fs.FileMode
	info    fs.FileInfo // when it was read
}

const bom = "\ufeff"

// maxEndings are the bytes at the beginning of a file whose ends of lines count: a file is written
// with CRLF if more lines there end so than with LF alone (observed on Claude Code 2.1.329).
const maxEndings = 4096

// open reads a document. refused says why the tools do not write such a file; "": they do.
func (h *hands) open(u *spot, path string) (d *document, refused string, err error) {
	content, info, err := h.load(u, path)
	if err != nil {
		return nil, "", err
	}
	d = &document{content: content, mode: info.Mode().Perm(), info: info}
	switch {
	case bytes.HasPrefix(content, []byte("\xff\xfe")):
		d.wide = true
		d.text = bom + utf16le(content[2:])
	case bytes.HasPrefix(content, []byte("\xfe\xff")):
		return nil, "File is UTF-16 big-endian (it starts FE FF), which these tools cannot write." + refusal, nil
	case bytes.IndexByte(content[:min(len(content), 8<<10)], 0) >= 0:
		return nil, "File has NUL bytes in its first 8 KB: binary data, UTF-16/UTF-32 without a byte-order mark, or text with embedded NULs." + refusal, nil
	case !utf8.Valid(content):
		return nil, "File is not valid UTF-8: it uses a legacy encoding such as Windows-1252, Shift-JIS or GBK, or it is binary." + refusal, nil
	default:
		d.text = string(content)
	}
	head := d.text[:min(len(d.text), maxEndings)]
	d.crlf = 2*strings.Count(head, "\r\n") > strings.Count(head, "\n")
	d.text = strings.ReplaceAll(d.text, "\r\n", "\n")
	return d, "", nil
}

const refusal = " These tools write UTF-8 (or UTF-16LE behind its byte-order mark) and never convert a file's encoding on their own, so nothing was written. If the file is text, make the change with a shell command that reads and writes it in its own encoding (iconv, or PowerShell Get-Content/Set-Content -Encoding), or ask the user whether to convert it to UTF-8 first. To replace the whole file with new UTF-8 text anyway, delete it first, then Write it."

// encode is text as the document stores it.
func (d *document) encode(text string) []byte {
	if d == nil || !d.wide {
		return []byte(text)
	}
	var b []byte
	for _, u := range utf16.Encode([]rune(text)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return b
}

// patch is the change as tool_use_result has it: hunks with three lines around them.
func patch(before, after string) []any {
	hunks := []any{}
	if before == after {
		return hunks
	}
	u, err := udiff.ToUnifiedDiff("", "", before, udiff.Lines(before, after), 3)
	if err != nil {
		return hunks // the edits are its own
	}
	for _, h := range u.Hunks {
		lines := []string{}
		olds, news := 0, 0
		for _, l := range h.Lines {
			mark := " "
			switch l.Kind {
			case udiff.Delete:
				mark = "-"
				olds++
			case udiff.Insert:
				mark = "+"
				news++
			case udiff.Equal:
				olds++
				news++
			}
			lines = append(lines, mark+strings.TrimSuffix(l.Content, "\n"))
			if !strings.HasSuffix(l.Content, "\n") {
				lines = append(lines, `\ No newline at end of file`)
			}
		}
		hunks = append(hunks, agent.Object{
			"oldStart": max(h.FromLine, 1), "oldLines": olds, "newStart": max(h.ToLine, 1), "newLines": news, "lines": lines,
		})
	}
	return hunks
}

// linkRefusal is what the model reads if the path is a link; "" for any other path.
func (h *hands) linkRefusal(path string) string {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return ""
	}
	target, err := os.Readlink(path)
	if err != nil {
		return fmt.Sprintf("Refusing to write %s: it is a symbolic link.", path)
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(path), target)
	}
	return fmt.Sprintf("Refusing to write %s: it is a symbolic link. Write to the link's target path instead: %s.", path, target)
}

// refusedLink refuses a call whose file is a link that its tool does not follow (observed on
// Claude Code 2.1.329): for a tool that writes any, for Read one that leads nowhere.
func (h *hands) refusedLink(own *tool, in agent.Object) agent.Verdict {
	if own.path == "" || own.tree {
		return agent.Verdict{}
	}
	name := str(in, own.path)
	v := agent.Verdict{Reason: "other"}
	if why := h.tree.refuses(own, h.path(name)); why != "" {
		return agent.Verdict{Deny: why, Tagged: true}
	}
	if own.name == "Read" {
		if _, err := os.Stat(h.path(name)); errors.Is(err, syscall.ELOOP) {
			v.Deny = h.explain(err, name, "read")
			v.About = "Where " + name + " leads on disk could not be determined (a link or directory on the way could not be examined, or the links do not resolve)"
		}
		return v
	}
	v.Deny, v.About = h.linkRefusal(h.path(name)), "Write target is a symbolic link"
	return v
}

// replace writes a file: whole or not at all, where its path led when the call was checked,
// and only if it is still the document before, whose mode it keeps; for a nil document, only if
// there is no file.
func (h *hands) replace(u *spot, path string, before *document, content []byte) error {
	at := u.leadsTo(path)
	dir, err := h.enterDir(filepath.Dir(at), true)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // it was only used
	name := filepath.Base(at)
	tmp := fmt.Sprintf("%s.tmp.%016x", name, h.seams.Rand.Uint64())
	part := path + tmp[len(name):]
	if err := h.disk.ask(diskMake, part); err != nil {
		return err
	}
	mode := fs.FileMode(0o666) // without the user's umask
	if before != nil {
		mode = 0o600
	}
	f, err := dir.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	err = h.disk.write(f, part, content)
	if err == nil && before != nil {
		err = f.Chmod(before.mode)
	}
	if err == nil {
		err = h.disk.sync(f, part)
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = h.disk.ask(diskRename, path)
	}
	if err == nil {
		err = put(dir, tmp, name, before)
	}
	if err != nil {
		_ = dir.Remove(tmp) // nothing of it stays
		return err
	}
	h.put(at, content)
	return nil
}

// put gives a file its name, if what has the name now is the document before.
func put(dir *os.Root, tmp, name string, before *document) error {
	now, err := dir.Lstat(name)
	switch {
	case before == nil && errors.Is(err, fs.ErrNotExist):
		err := dir.Link(tmp, name) // it fails if a file has got the name
		switch {
		case errors.Is(err, fs.ErrExist):
			return errMoved
		case err != nil: // there are no links on this disk
			return dir.Rename(tmp, name)
		}
		return dir.Remove(tmp)
	case before == nil && err == nil:
		return errMoved
	case errors.Is(err, fs.ErrNotExist):
		return errMoved
	case err != nil:
		return err
	case !os.SameFile(now, before.info) || now.Size() != before.info.Size() || !now.ModTime().Equal(before.info.ModTime()):
		return errMoved
	}
	return dir.Rename(tmp, name)
}
