package kubernetes

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
)

// image is what all pods run: our payload, and nothing else. It is pulled from nowhere.
const image = "gpumeter.test/payload:1"

// importImage gives it to the runtime.
func importImage(t *testing.T) {
	binary := roomDir + "/payload"
	output(t, "payload", []string{"CGO_ENABLED=0"}, "go", "build", "-trimpath", "-o", binary, ".")
	program, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	layer := archive(t, map[string][]byte{"payload": program}, "payload")
	config := fmt.Appendf(nil, `{"architecture": %q, "os": "linux", "config": {"Entrypoint": ["/payload"], "Cmd": ["pause"]},
		"rootfs": {"type": "layers", "diff_ids": ["sha256:%x"]}}`, runtime.GOARCH, sha256.Sum256(layer))
	manifest := fmt.Appendf(nil, `[{"Config": "config.json", "RepoTags": [%q], "Layers": ["layer.tar"]}]`, image)
	files := map[string][]byte{"layer.tar": layer, "config.json": config, "manifest.json": manifest}
	file := write(t, roomDir+"/image.tar", string(archive(t, files, "layer.tar", "config.json", "manifest.json")))
	await(t, "import of the image", func(ctx context.Context) error {
		said, err := exec.CommandContext(ctx, "ctr", "-n", "k8s.io", "images", "import", file).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, said)
		}
		return nil
	})
}

// archive packs files in this order.
func archive(t *testing.T, files map[string][]byte, names ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range names {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(files[name]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(files[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
