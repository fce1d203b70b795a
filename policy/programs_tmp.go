package policy

func bound(words []string) bool { return programName(words[0]) == "git" }
func (c *command) prints() bool {
	return len(c.known) > 0 && (c.known[0] == "echo" || c.known[0] == "printf")
}
func (c *command) reads() bool { return len(c.known) > 0 && c.known[0] == "cat" }
