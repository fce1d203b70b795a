package measure

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
)

// Twin starts this program in a second process, with one more variable in its environment, and returns
// the first line that it prints. The twin ends when its input does: end closes that, and waits for it.
func Twin(variable string) (line []byte, end func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), variable)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	end = func() error { return errors.Join(in.Close(), cmd.Wait()) }
	if line, err = bufio.NewReader(out).ReadBytes('\n'); err != nil {
		return nil, nil, errors.Join(err, end())
	}
	return line, end, nil
}
