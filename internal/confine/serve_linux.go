package confine

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	kernel "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// minVersion is the first version of Landlock that confines all writes: before it, files could
// be truncated. It is that of Linux 6.2.
const minVersion = 3

// Available returns nil if the kernel can confine commands, or an error that wraps
// [errors.ErrUnsupported].
func Available() error {
	switch v, err := kernel.LandlockGetABIVersion(); {
	case err != nil:
		return fmt.Errorf("this kernel has no Landlock, or it is switched off (%w): %w", err, errors.ErrUnsupported)
	case v < minVersion:
		return fmt.Errorf("this kernel has version %d of Landlock, and %d is needed (Linux 6.2): %w", v, minVersion, errors.ErrUnsupported)
	}
	return nil
}

const (
	readFile  = kernel.AccessFSExecute | kernel.AccessFSReadFile
	writeFile = readFile | kernel.AccessFSWriteFile | kernel.AccessFSTruncate
	// A device that is made would lead to all of a disk.
	writeDir = writeFile | kernel.AccessFSReadDir | kernel.AccessFSRemoveDir | kernel.AccessFSRemoveFile | kernel.AccessFSMakeDir |
		kernel.AccessFSMakeReg | kernel.AccessFSMakeSock | kernel.AccessFSMakeFifo | kernel.AccessFSMakeSym | kernel.AccessFSRefer
	// allV3 are the rights of version 3.
	allV3 = writeDir | kernel.AccessFSMakeChar | kernel.AccessFSMakeBlock
)

// config is what the kernel confines: what minVersion has, and what it has beyond that. Devices
// get no ioctl, with which a terminal could be given input. Sockets in the file system, with
// which daemons could be asked to do what the command may not, are refused from version 9 on;
// signals to other processes, and abstract sockets, from version 6 on.
func config() (landlock.Config, error) {
	v, err := kernel.LandlockGetABIVersion()
	if err != nil {
		return landlock.Config{}, err
	}
	c := landlock.Config{HandledAccessFS: allV3}
	if v >= 5 {
		c.HandledAccessFS |= kernel.AccessFSIoctlDev
	}
	if v >= 6 {
		c.Scoped = kernel.ScopeSignal | kernel.ScopeAbstractUnixSocket
	}
	if v >= 9 {
		c.HandledAccessFS |= kernel.AccessFSResolveUnix
	}
	return c, nil
}

// exec confines the thread and executes argv. It returns only if it fails.
func (r Rules) exec(argv, env []string) error {
	if err := Available(); err != nil {
		return err
	}
	c, err := config()
	if err != nil {
		return err
	}
	grant := func(access landlock.AccessFSSet, paths ...string) landlock.Rule {
		return landlock.PathAccess(access, paths...).IgnoreIfMissing()
	}
	fd, flags, err := c.NewRulesetFD(
		grant(kernel.AccessFSReadDir, "/"), grant(readFile, r.Read...), grant(writeDir, r.Write...),
		grant(readFile, r.ReadFiles...), grant(writeFile, r.WriteFiles...),
		grant(kernel.AccessFSWriteFile|kernel.AccessFSTruncate, "/dev/null", "/dev/zero", "/dev/full"),
	)
	if err != nil {
		return err
	}
	runtime.LockOSThread()                                                                       // the thread becomes the command
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0); err != nil { // that of the first thread is lost
		return err
	}
	if os.Getppid() != r.Parent {
		return errors.New("the program that started it has ended")
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil { // required of all users but root
		return err
	}
	if err := weaken(); err != nil {
		return err
	}
	if err := kernel.LandlockRestrictSelf(fd, flags); err != nil {
		return fmt.Errorf("landlock_restrict_self: %w", err)
	}
	return fmt.Errorf("execute %s: %w", argv[0], syscall.Exec(argv[0], argv, env))
}

// weaken takes from root what leads around the rules: the memory and the environment of other
// processes, devices, mounts, modules. Capabilities for files, users and ports stay.
func weaken() error {
	keep := []uintptr{
		unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL, unix.CAP_SETGID, unix.CAP_SETUID,
		unix.CAP_SETPCAP, unix.CAP_NET_BIND_SERVICE, unix.CAP_SETFCAP,
	}
	for capability := range uintptr(64) {
		if slices.Contains(keep, capability) {
			continue
		}
		switch err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); {
		case errors.Is(err, unix.EPERM), errors.Is(err, unix.EINVAL): // it is not root, or there are no more
			return nil
		case err != nil:
			return fmt.Errorf("drop capability %d: %w", capability, err)
		}
	}
	return nil
}
