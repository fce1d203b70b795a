package embedded

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The skills of a project, and of a directory elsewhere. A link does not lead out of them.
func TestSkillsOfDirectories(t *testing.T) {
	t.Parallel()
	h := handsIn(t,
		"s/b/SKILL.md", "---\nname: other\ndescription: >\n  Says\n  b.\n---\nBody b\n",
		"s/a.md", "no head\n",
		"s/hid/SKILL.md", "---\ndisable-model-invocation: true\ndescription: [\n---\nno YAML\n",
		"s/none/other.md", "x", "s/text.txt", "x", "s/bad name/SKILL.md", "x", "s/-x.md", "x",
		"more/a.md", "the second a\n", "more/c.md", "---\ndescription: c\n---\r\n", "out/x/SKILL.md", "x",
	)
	away := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(away, "away.md"), []byte("away"), 0o600))
	require.NoError(t, os.Symlink(away, filepath.Join(h.root, "s", "out")))
	require.NoError(t, os.Symlink(filepath.Join(away, "away.md"), filepath.Join(h.root, "s", "link.md")))
	require.NoError(t, os.Symlink(away, filepath.Join(h.root, "linked")))
	all := h.skills([]string{"s", "more", "missing", "linked", "../" + filepath.Base(away)})
	var names []string
	for _, k := range all {
		names = append(names, k.name)
	}
	assert.Equal(t, []string{"a", "b", "c", "hid"}, names)
	assert.Equal(t, skill{name: "a", body: "no head\n"}, all[0], "the first directory counts")
	assert.Equal(t, skill{name: "b", about: "Says b.", dir: filepath.Join(h.root, "s", "b"), body: "Body b\n"}, all[1])
	assert.True(t, all[3].hidden, "also if the rest cannot be read")
	assert.Equal(t, "\nSkills, which the tool Skill loads:\n- a: \n- b: Says b.\n- c: c\n", skillList(all))
	assert.Len(t, h.skills([]string{away}), 1, "an absolute directory is anywhere")
	assert.Empty(t, skillList(nil))
	assert.Empty(t, skillList(all[3:]))
}

func TestTheTextOfASkill(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ body, dir, args, want string }{
		{"x", "", "", "x"},
		{"x", "", "a b", "x\n\nARGUMENTS: a b"},
		{"$ARGUMENTS and $1", "", "a b", "a b and b"},
		{"$ARGUMENTS.", "", "", "."},
		{"$2", "", "a b", "$2\n\nARGUMENTS: a b"},
		{"$0 ${CLAUDE_SKILL_DIR}", "/d", "$1", "Base directory for this skill: /d\n\n$1 /d"},
		{"${CLAUDE_SKILL_DIR} $ARGUMENTSX $99999999999999999999", "", "", "${CLAUDE_SKILL_DIR} $ARGUMENTSX $99999999999999999999"},
	} {
		k := skill{body: c.body, dir: c.dir}
		assert.Equal(t, c.want, k.filled(c.args), c.body)
	}
	assert.Len(t, skillList([]skill{{name: "n", about: strings.Repeat("ä", 500)}}), len("\nSkills, which the tool Skill loads:\n- n: ")+maxSkillNote+len("…\n"))
}
