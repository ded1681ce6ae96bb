package packaging

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/moby/buildkit/client/llb"
	"github.com/moby/buildkit/client/llb/sourceresolver"
	"github.com/moby/buildkit/frontend/dockerfile/dockerfile2llb"
	"github.com/moby/buildkit/frontend/dockerui"
	"github.com/moby/buildkit/solver/pb"
	"github.com/opencontainers/go-digest"
	ocispecs "github.com/opencontainers/image-spec/specs-go/v1"
	"go.yaml.in/yaml/v3"
)

// registry says of every image that it is for the platform asked for, since none can be reached.
type registry struct{ asked map[string]bool }

func (r registry) ResolveImageConfig(_ context.Context, ref string, opt sourceresolver.Opt) (string, digest.Digest, []byte, error) {
	r.asked[ref] = true
	image := ocispecs.Image{
		Platform: *opt.ImageOpt.Platform,
		Config:   ocispecs.ImageConfig{Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin"}},
		RootFS:   ocispecs.RootFS{Type: "layers", DiffIDs: []digest.Digest{digest.FromString(ref)}}, // without a layer it is scratch
	}
	config, err := json.Marshal(image)
	return ref, digest.FromBytes(config), config, err
}

// conversion is how the Dockerfile is to be read.
func conversion(target, arch string, images registry, text []byte) dockerfile2llb.ConvertOpt {
	source := llb.NewSourceMap(nil, "Dockerfile", "Dockerfile", text)
	source.Definition = &llb.Definition{} // of where it came from: nowhere
	return dockerfile2llb.ConvertOpt{
		Config: dockerui.Config{
			Target:         target,
			BuildArgs:      map[string]string{"VERSION": "v1.2.3", "REVISION": "abc"},
			BuildPlatforms: []ocispecs.Platform{{OS: "linux", Architecture: "amd64"}},
		},
		MetaResolver:   images,
		TargetPlatform: &ocispecs.Platform{OS: "linux", Architecture: arch},
		SourceMap:      source,
	}
}

func dockerfile(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(root + "/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// BuildKit's own linter has nothing to say.
func TestDockerfileLint(t *testing.T) {
	text := dockerfile(t)
	found, err := dockerfile2llb.DockerfileLint(t.Context(), text, conversion("", "arm64", registry{map[string]bool{}}, text))
	if err != nil {
		t.Fatal(err)
	}
	if found.Error != nil {
		t.Error(found.Error.Message)
	}
	for _, w := range found.Warnings {
		t.Errorf("%s: %s", w.RuleName, w.Detail)
	}
}

// Both targets, for both architectures, are the same image around another binary.
func TestDockerfile(t *testing.T) {
	text := dockerfile(t)
	for _, target := range []string{"", "prebuilt"} {
		for _, arch := range []string{"amd64", "arm64"} {
			images := registry{map[string]bool{}}
			got, err := dockerfile2llb.Dockerfile2LLB(t.Context(), text, conversion(target, arch, images, text))
			if err != nil {
				t.Fatal(target, arch, err)
			}
			c := got.Image.Config
			if !slices.Equal(c.Entrypoint, []string{"/usr/bin/gpumeter"}) || !slices.Equal(c.Cmd, []string{"serve"}) || c.User != "65532:65532" {
				t.Errorf("%s %s: %q %q as %s", target, arch, c.Entrypoint, c.Cmd, c.User)
			}
			if _, ok := c.ExposedPorts["9450/tcp"]; !ok || len(c.ExposedPorts) != 1 {
				t.Errorf("ports %v", c.ExposedPorts)
			}
			for _, want := range []string{"NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=utility"} {
				if !slices.Contains(c.Env, want) {
					t.Errorf("environment %q has no %s", c.Env, want)
				}
			}
			for label, want := range map[string]string{
				"title": "gpumeter", "licenses": "Apache-2.0", "source": "https://github.com/gpumeter/gpumeter", "version": "v1.2.3", "revision": "abc",
			} {
				if said := c.Labels["org.opencontainers.image."+label]; said != want {
					t.Errorf("label %s is %q, want %q", label, said, want)
				}
			}
			if got.Image.Architecture != arch {
				t.Errorf("for %s", got.Image.Architecture)
			}
			// A cross-compiler runs on the builder's own architecture, and nothing is run on the other's.
			definition, err := got.State.Marshal(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			copied := ""
			for _, part := range definition.Def {
				var op pb.Op
				if err := op.UnmarshalVT(part); err != nil {
					t.Fatal(err)
				}
				if op.GetExec() != nil && op.Platform.Architecture != "amd64" {
					t.Errorf("%s %s: emulates %q", target, arch, op.GetExec().Meta.Args)
				}
				for _, action := range op.GetFile().GetActions() {
					if c := action.GetCopy(); c != nil && c.Dest == "/usr/bin/gpumeter" {
						copied = c.Src
					}
				}
			}
			if want := map[string]string{"": "/out/gpumeter", "prebuilt": "/linux/" + arch + "/gpumeter"}[target]; copied != want {
				t.Errorf("%q %s: the program is %q, want %q", target, arch, copied, want)
			}
			if builds := images.asked["docker.io/library/golang:1.26-bookworm"]; builds != (target == "") {
				t.Errorf("%q: compiles: %v, of images %v", target, builds, images.asked)
			}
		}
	}
}

// goreleaser asks for a target and platforms that the Dockerfile has, and the Go version is that of go.mod.
func TestRelease(t *testing.T) {
	text, err := os.ReadFile(root + "/.goreleaser.yaml")
	var release struct {
		Dockers []struct {
			Flags, Platforms []string
			Dockerfile       string
		} `yaml:"dockers_v2"`
	}
	if err = errors.Join(err, yaml.Unmarshal(text, &release)); err != nil {
		t.Fatal(err)
	}
	if len(release.Dockers) != 1 || !slices.Equal(release.Dockers[0].Flags, []string{"--target=prebuilt"}) || release.Dockers[0].Dockerfile != "Dockerfile" ||
		!slices.Equal(release.Dockers[0].Platforms, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("%+v", release.Dockers)
	}
	module, err := os.ReadFile(root + "/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if _, rest, ok := strings.Cut(string(dockerfile(t)), "\nARG GO="); !ok || !strings.Contains(string(module), "\ngo "+strings.TrimSpace(strings.SplitN(rest, "\n", 2)[0])+".") {
		t.Error("the Dockerfile's Go is not that of go.mod")
	}
}
