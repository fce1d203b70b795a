package sessions_test

import "os/exec"

var osexec = exec.Command
