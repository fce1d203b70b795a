package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Share is what a program does for a job that several programs share.
type Share string

// Shares.
const (
	// ShareAll runs tasks, and has all results.
	ShareAll Share = "all"
	// ShareSubmit runs no task, and has all results.
	ShareSubmit Share = "submit"
	// ShareWork runs tasks. Its results, journal and files are those of the tasks that it has run;
	// of other tasks it knows how they ended.
	ShareWork Share = "work"
)

// Hash identifies the content of a task, for Job.Hashes.
func (t *Task) Hash() (string, error) {
	b, err := json.Marshal(t)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8]), nil
}
