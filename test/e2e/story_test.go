package e2e

import (
	"context"
	"errors"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/gpumeter/gpumeter/test/fakenvml"
)

// Each file of stories/ is one story, told as a shell would. Beside testscript's own commands:
//
//	address NAME          puts a free loopback address into the variable NAME
//	fetch URL [HEADER…]   waits until URL answers 200 and makes the page the standard output
//	status CODE URL       wants this status at once
//	until REGEXP URL      fetches URL until the page matches, and makes it the standard output
//	post CODE URL         posts nothing to URL, wants this status at once and makes the answer the standard output
//	driver NAME           puts the file of a fake NVML library into the variable NAME
//	exits CODE PROGRAM…   wants this exit code; standard output and error can be compared after it
func TestStories(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "stories",
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", filepath.Dir(binary)+":"+e.Getenv("PATH"))
			e.Setenv("GPUMETER_HOST_SYS", filepath.Join(e.WorkDir, "sys")) // nothing of this machine is expected
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"address": func(ts *testscript.TestScript, _ bool, args []string) { ts.Setenv(args[0], freeAddress(t)) },
			"fetch":   fetchPage,
			"status":  wantStatus,
			"until":   until,
			"post":    post,
			"driver": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Setenv(args[0], filepath.Join(fakenvml.Build(t), fakenvml.Library))
			},
			"exits": wantExit,
		},
	})
}

func fetchPage(ts *testscript.TestScript, _ bool, args []string) {
	page, err := fetch(args[0], args[1:])
	ts.Check(err)
	_, err = ts.Stdout().Write([]byte(page))
	ts.Check(err)
}

func until(ts *testscript.TestScript, _ bool, args []string) {
	want := regexp.MustCompile("(?m)" + args[0])
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		page, err := fetch(args[1], args[2:])
		ts.Check(err)
		if want.MatchString(page) {
			_, err = ts.Stdout().Write([]byte(page))
			ts.Check(err)
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s never matches %s:\n%s", args[1], args[0], page)
		}
	}
}

func wantStatus(ts *testscript.TestScript, _ bool, args []string) {
	once(ts, http.MethodGet, args)
}

func post(ts *testscript.TestScript, _ bool, args []string) {
	_, err := ts.Stdout().Write([]byte(once(ts, http.MethodPost, args)))
	ts.Check(err)
}

// once sends one request and wants a status; args are that, the URL and headers.
func once(ts *testscript.TestScript, method string, args []string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	body, code, err := request(ctx, method, args[1], args[2:])
	ts.Check(err)
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("%s %s: status %d, want %s\n%s", method, args[1], code, args[0], body)
	}
	return body
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
