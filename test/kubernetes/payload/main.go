// Command payload is all that is in the image of the test's pods.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "payload:", err)
		os.Exit(1)
	}
}

// run does as it is told: pause holds a pod's namespaces; sleep stays until it is told to end; fork
// does the same with a child beside it; end ends at once.
func run(args []string) error {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	if len(args) != 1 {
		return fmt.Errorf("want one word, got %q", args)
	}
	switch args[0] {
	case "end":
		return nil
	case "pause", "sleep":
	case "fork":
		child := exec.Command("/proc/self/exe", "sleep")
		child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := child.Start(); err != nil {
			return err
		}
	default:
		return fmt.Errorf("what is %s?", args[0])
	}
	<-ended
	return nil
}
