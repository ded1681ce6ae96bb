package e2e

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// Each file of stories/ is one story, told as a shell would. Beside testscript's own commands:
//
//	address NAME          puts a free loopback address into the variable NAME
//	fetch URL [HEADER…]   waits until URL answers 200 and makes the page the standard output
//	status CODE URL       wants this status at once
//	exits CODE PROGRAM…   wants this exit code; standard output and error can be compared after it
func TestStories(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "stories",
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", filepath.Dir(binary)+":"+e.Getenv("PATH"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"address": func(ts *testscript.TestScript, _ bool, args []string) { ts.Setenv(args[0], freeAddress(t)) },
			"fetch":   fetchPage,
			"status":  wantStatus,
			"exits":   wantExit,
		},
	})
}

func fetchPage(ts *testscript.TestScript, _ bool, args []string) {
	page, err := fetch(args[0], args[1:])
	ts.Check(err)
	_, err = ts.Stdout().Write([]byte(page))
	ts.Check(err)
}

func wantStatus(ts *testscript.TestScript, _ bool, args []string) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, code, err := fetchOnce(ctx, args[1], args[2:])
	ts.Check(err)
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("%s: status %d, want %s", args[1], code, args[0])
	}
}

func wantExit(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}
