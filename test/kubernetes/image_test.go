package kubernetes

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// image is what all pods of the test's own run: our payload, and nothing else. It is pulled from nowhere.
const image = "gpumeter.test/payload:1"

// importPayload gives it to the container runtime.
func importPayload(t *testing.T) {
	binary := roomDir + "/payload"
	output(t, "payload", []string{"CGO_ENABLED=0"}, "go", "build", "-trimpath", "-o", binary, ".")
	importImage(t, `{"Entrypoint": ["/payload"], "Cmd": ["pause"]}`, map[string]string{"payload": binary}, image)
}

// importGpumeter gives the container runtime what the Dockerfile makes: the program, the C library it needs, and an
// ordinary user.
func importGpumeter(t *testing.T, names ...string) {
	binary := os.Getenv("GPUMETER_BINARY")
	importImage(t, `{"Entrypoint": ["/usr/bin/gpumeter"], "Cmd": ["serve"], "User": "65532:65532"}`, withLibraries(t, binary, "usr/bin/gpumeter"), names...)
}

// importBusybox gives it Debian's, in the shape of the one helm test asks for.
func importBusybox(t *testing.T, name string) {
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Fatal(err)
	}
	importImage(t, `{"Cmd": ["sh"]}`, withLibraries(t, busybox, "bin/sh", "bin/wget", "bin/grep"), name)
}

// withLibraries are the files of an image that has a program at these paths, and the C library and loader it needs,
// if any.
func withLibraries(t *testing.T, program string, paths ...string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, path := range paths {
		files[path] = program
	}
	needs, err := exec.CommandContext(t.Context(), "ldd", program).CombinedOutput()
	if err != nil && !strings.Contains(string(needs), "not a dynamic executable") {
		t.Fatalf("ldd %s: %v: %s", program, err, needs)
	}
	for _, library := range regexp.MustCompile(`(/\S+) \(0x`).FindAllStringSubmatch(string(needs), -1) {
		files[strings.TrimPrefix(library[1], "/")] = library[1]
	}
	return files
}

// importImage makes an image of files, each with its path in it, and gives it to the container runtime.
func importImage(t *testing.T, runs string, files map[string]string, names ...string) {
	t.Helper()
	contents := map[string][]byte{}
	for path, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		contents[path] = text
	}
	layer := archive(t, contents)
	config := fmt.Appendf(nil, `{"architecture": %q, "os": "linux", "config": %s, "rootfs": {"type": "layers", "diff_ids": ["sha256:%x"]}}`,
		runtime.GOARCH, runs, sha256.Sum256(layer))
	manifest := fmt.Appendf(nil, `[{"Config": "config.json", "RepoTags": [%q], "Layers": ["layer.tar"]}]`, names[0])
	file := write(t, roomDir+"/image.tar", string(archive(t, map[string][]byte{"layer.tar": layer, "config.json": config, "manifest.json": manifest})))
	await(t, "import of "+names[0], func(ctx context.Context) error { return ctr(ctx, "import", file) })
	for _, name := range names[1:] {
		if err := ctr(t.Context(), "tag", names[0], name); err != nil {
			t.Fatal(err)
		}
	}
}

// ctr does something with the images pods may have.
func ctr(ctx context.Context, args ...string) error {
	said, err := exec.CommandContext(ctx, "ctr", append([]string{"-n", "k8s.io", "images"}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, said)
	}
	return nil
}

// archive packs files.
func archive(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
