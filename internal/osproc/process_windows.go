package osproc

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Untested. The process is created suspended, put into a job object and then
// resumed, so that no descendant is outside the job; the job ends with its last
// handle, and with the host. KeepProcess is not asked. A blocked Write or Read on a pipe is not cancelled
// by a deadline here, only by the other side's end.

// leader owns the handles of the process and its job; zero when it never
// started.
type leader struct {
	process windows.Handle
	job     windows.Handle
}

// hungUp cannot tell here.
func hungUp(*os.File) bool { return false }

// spawn creates the process inside its job.
func (p *Process) spawn(n *launch) error {
	if ext := strings.ToLower(filepath.Ext(n.path)); ext == ".bat" || ext == ".cmd" {
		// cmd.exe reads the arguments by its own rules, which no quoting satisfies.
		return fmt.Errorf("%s files are not started: name the program they call, and its interpreter: %w", ext, syscall.ENOEXEC)
	}
	job, err := newJob()
	if err != nil {
		return err
	}
	pi, err := createSuspended(n)
	if err != nil {
		_ = windows.CloseHandle(job)
		return err
	}
	defer func() { _ = windows.CloseHandle(pi.Thread) }()
	if err = windows.AssignProcessToJobObject(job, pi.Process); err == nil {
		_, err = windows.ResumeThread(pi.Thread)
	}
	if err != nil {
		_ = windows.TerminateProcess(pi.Process, 1)
		_ = windows.CloseHandle(pi.Process)
		_ = windows.CloseHandle(job)
		return err
	}
	p.pid = int(pi.ProcessId)
	p.leader = leader{process: pi.Process, job: job}
	return nil
}

// newJob makes a job that kills its processes when its last handle closes.
func newJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, err
	}
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err != nil {
		_ = windows.CloseHandle(job)
		return 0, err
	}
	return job, nil
}

func createSuspended(n *launch) (*windows.ProcessInformation, error) {
	path, err := windows.UTF16PtrFromString(n.path)
	if err != nil {
		return nil, err
	}
	line, err := windows.UTF16PtrFromString(windows.ComposeCommandLine(n.argv))
	if err != nil {
		return nil, err
	}
	var dir *uint16
	if n.dir != "" {
		if dir, err = windows.UTF16PtrFromString(n.dir); err != nil {
			return nil, err
		}
	}
	env, err := environmentBlock(n.env)
	if err != nil {
		return nil, err
	}
	// Only the three pipe ends are inherited, whatever else is inheritable in
	// the host.
	handles := make([]windows.Handle, len(n.child))
	for i, f := range n.child {
		handles[i] = windows.Handle(f.Fd())
		if err := windows.SetHandleInformation(handles[i], windows.HANDLE_FLAG_INHERIT, windows.HANDLE_FLAG_INHERIT); err != nil {
			return nil, err
		}
	}
	list, err := windows.NewProcThreadAttributeList(1)
	if err != nil {
		return nil, err
	}
	defer list.Delete()
	err = list.Update(windows.PROC_THREAD_ATTRIBUTE_HANDLE_LIST, unsafe.Pointer(&handles[0]),
		uintptr(len(handles))*unsafe.Sizeof(handles[0]))
	if err != nil {
		return nil, err
	}
	si := windows.StartupInfoEx{ProcThreadAttributeList: list.List()}
	si.Cb = uint32(unsafe.Sizeof(si))
	si.Flags = windows.STARTF_USESTDHANDLES
	si.StdInput, si.StdOutput, si.StdErr = handles[0], handles[1], handles[2]
	pi := new(windows.ProcessInformation)
	err = windows.CreateProcess(path, line, nil, nil, true,
		windows.CREATE_SUSPENDED|windows.CREATE_NEW_PROCESS_GROUP|windows.CREATE_UNICODE_ENVIRONMENT|windows.EXTENDED_STARTUPINFO_PRESENT,
		&env[0], dir, &si.StartupInfo, pi)
	runtime.KeepAlive(n)
	return pi, err
}

// environmentBlock is each entry with a final zero, and one more zero.
func environmentBlock(env []string) ([]uint16, error) {
	var block []uint16
	for _, kv := range env {
		entry, err := windows.UTF16FromString(kv)
		if err != nil {
			return nil, err
		}
		block = append(block, entry...)
	}
	return append(block, 0), nil
}

func (l *leader) exited(int) bool {
	event, err := windows.WaitForSingleObject(l.process, 0)
	return err != nil || event == windows.WAIT_OBJECT_0
}

// signalGroup knows two signals: SIGKILL ends the job, all others become
// Ctrl-Break for the process group.
func (l *leader) signalGroup(pid int, sig Signal) error {
	if sig == syscall.SIGKILL {
		return windows.TerminateJobObject(l.job, 1)
	}
	return windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(pid))
}

func (l *leader) collect(int) (ExitStatus, error) {
	var code uint32
	if err := windows.GetExitCodeProcess(l.process, &code); err != nil {
		return ExitStatus{Code: -1}, err
	}
	return ExitStatus{Code: int(code)}, nil
}

func (l *leader) close() {
	if l.process != 0 {
		_ = windows.CloseHandle(l.process)
		_ = windows.CloseHandle(l.job)
		*l = leader{}
	}
}

// jobTable leaves everything to the job object: SIGKILL to the group has ended
// all of it at once.
type jobTable struct{}

func newTable(func(int) bool, func(int) []string) table { return jobTable{} }

func (jobTable) scan(*wanted, func(*sweepJob, member)) (bool, error) { return true, nil }
func (jobTable) member(*sweepJob, int) (member, bool)                { return member{}, false }
func (jobTable) kill(*sweepJob, member) error                        { return nil }
func (jobTable) gone(member) bool                                    { return true }
func (jobTable) since(int) uint64                                    { return 0 }
func (jobTable) remember()                                           {}

// canExecute leaves it to CreateProcess: the extension decides, not a mode.
func canExecute(path string) error {
	_, err := os.Stat(path)
	return err
}

// extensions are what a program's name may lack.
func extensions(env []string) []string {
	var out []string
	for _, ext := range strings.Split(lookupEnv(env, "PATHEXT"), ";") {
		if ext != "" {
			out = append(out, ext)
		}
	}
	if len(out) == 0 {
		out = []string{".exe", ".com"}
	}
	return append(out, "") // last: npm puts a shell script of the bare name beside the .cmd file
}

func sameVariable(a, b string) bool { return strings.EqualFold(a, b) }
