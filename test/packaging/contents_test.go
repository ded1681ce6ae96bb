package packaging

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// glibc is the version whose symbols are the newest a binary asks for, which is what the packages depend on.
const glibc = "2.17"

// files are what a package installs, beside what differs.
var files = []string{
	"-rw-r--r-- /etc/default/gpumeter",
	"-rwxr-xr-x /usr/bin/gpumeter",
	"-rw-r--r-- /usr/lib/systemd/system/gpumeter.service",
	"-rw-r--r-- /usr/share/bash-completion/completions/gpumeter",
	"-rw-r--r-- /usr/share/doc/gpumeter/LICENSES",
	"-rw-r--r-- /usr/share/fish/vendor_completions.d/gpumeter.fish",
	"-rwxr-xr-x /usr/share/gpumeter/slurm/epilog.sh",
	"-rwxr-xr-x /usr/share/gpumeter/slurm/prolog.sh",
	"-rw-r--r-- /usr/share/man/man1/gpumeter.1.gz",
}

var (
	onlyDeb = []string{"-rw-r--r-- /usr/share/doc/gpumeter/copyright", "-rw-r--r-- /usr/share/zsh/vendor-completions/_gpumeter"}
	onlyRPM = []string{
		"-rw-r--r-- /usr/share/doc/gpumeter/LICENSE", "-rw-r--r-- /usr/share/zsh/site-functions/_gpumeter",
		"drwxr-xr-x /usr/share/doc/gpumeter", "drwxr-xr-x /usr/share/gpumeter", "drwxr-xr-x /usr/share/gpumeter/slurm", // an RPM takes out only what it names
	}
)

// same compares lists whatever their order.
func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	for _, g := range got {
		if !slices.Contains(want, g) {
			t.Errorf("%s: has %q", what, g)
		}
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("%s: has no %q", what, w)
		}
	}
}

func TestDeb(t *testing.T) {
	needs(t, "dpkg-deb")
	for _, a := range architectures {
		t.Run(a.deb, func(t *testing.T) {
			deb := made(t, "gpumeter_*_"+a.deb+".deb")
			var got []string
			for line := range strings.Lines(output(t, "dpkg-deb", "-c", deb)) {
				f := strings.Fields(line) // mode, owner, size, date, time, name
				if f[1] != "root/root" {
					t.Errorf("not root's: %s", line)
				}
				if !strings.HasSuffix(f[5], "/") {
					got = append(got, f[0]+" "+strings.TrimPrefix(f[5], "."))
				} else if f[0] != "drwxr-xr-x" {
					t.Errorf("a folder of its own mode: %s", line)
				}
			}
			same(t, "files", got, slices.Concat(files, onlyDeb))
			for field, want := range map[string]string{
				"Package": "gpumeter", "Architecture": a.deb, "Depends": "libc6 (>= " + glibc + ")", "Section": "admin",
				"Homepage": "https://github.com/gpumeter/gpumeter",
			} {
				if said := strings.TrimSpace(output(t, "dpkg-deb", "-f", deb, field)); said != want {
					t.Errorf("%s: %q, want %q", field, said, want)
				}
			}
			control := t.TempDir()
			output(t, "dpkg-deb", "-e", deb, control)
			if conf, err := os.ReadFile(filepath.Join(control, "conffiles")); err != nil || string(conf) != "/etc/default/gpumeter\n" {
				t.Errorf("conffiles: %q, %v", conf, err)
			}
			var names []string
			entries, err := os.ReadDir(control)
			for _, e := range entries {
				names = append(names, e.Name())
			}
			same(t, fmt.Sprint("control ", err), names, []string{"control", "conffiles", "md5sums", "postinst", "prerm", "postrm"})
		})
	}
}

func TestRPM(t *testing.T) {
	needs(t, "rpm")
	for _, a := range architectures {
		t.Run(a.rpm, func(t *testing.T) {
			rpm := made(t, "gpumeter-*."+a.rpm+".rpm")
			query := func(format string) []string {
				return strings.FieldsFunc(output(t, "rpm", "-qp", "--qf", format, rpm), func(r rune) bool { return r == '\n' })
			}
			same(t, "files", query(`[%{FILEMODES:perms} %{FILENAMES}\n]`), slices.Concat(files, onlyRPM))
			same(t, "owners", slices.Compact(query(`[%{FILEUSERNAME}:%{FILEGROUPNAME}\n]`)), []string{"root:root"})
			for _, line := range query(`[%{FILEFLAGS:fflags} %{FILENAMES}\n]`) {
				flags, name, _ := strings.Cut(line, " ")
				if want := map[string]string{"/etc/default/gpumeter": "cn"}[name]; flags != want {
					t.Errorf("%s is %q, want %q (config, noreplace)", name, flags, want)
				}
			}
			same(t, "header", query(`%{NAME}\n%{ARCH}\n%{LICENSE}\n%{URL}\n%{BUILDHOST}\n`),
				[]string{"gpumeter", a.rpm, "Apache-2.0", "https://github.com/gpumeter/gpumeter", "localhost"})
			requires := strings.Split(strings.TrimSpace(output(t, "rpm", "-qp", "--requires", rpm)), "\n")
			requires = slices.DeleteFunc(requires, func(r string) bool { return strings.HasPrefix(r, "rpmlib(") })
			same(t, "requires", requires, []string{"libc.so.6(GLIBC_" + glibc + ")(64bit)"})
			for _, scriptlet := range []string{"POSTIN", "PREUN", "POSTUN"} {
				if strings.Join(query("%{"+scriptlet+"}"), "") == "(none)" {
					t.Errorf("no %s", scriptlet)
				}
			}
		})
	}
}

// The archives hold the same binary, and checksums are of everything.
func TestArchives(t *testing.T) {
	for _, a := range architectures {
		t.Run(a.deb, func(t *testing.T) {
			archive := made(t, "gpumeter_*_linux_"+a.deb+".tar.gz")
			var got []string
			for line := range strings.Lines(output(t, "tar", "-tvf", archive)) {
				f := strings.Fields(line)
				_, name, _ := strings.Cut(f[5], "/")
				got = append(got, f[0]+" "+f[1]+" "+name)
			}
			const text, program = "-rw-r--r-- root/root ", "-rwxr-xr-x root/root "
			same(t, "files", got, []string{
				program + "gpumeter", text + "LICENSE", text + "LICENSES", text + "README.md", text + "CHANGELOG.md",
				text + "man/gpumeter.1.gz", text + "completions/bash", text + "completions/zsh", text + "completions/fish",
				text + "systemd/gpumeter.service", text + "systemd/gpumeter.default", program + "slurm/prolog.sh", program + "slurm/epilog.sh",
			})
		})
	}
	sums := made(t, "SHA256SUMS")
	text, err := os.ReadFile(sums)
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for line := range strings.Lines(string(text)) {
		got = append(got, filepath.Ext(strings.Fields(line)[1]))
	}
	for _, ext := range []string{".gz", ".deb", ".rpm", ".json"} { // the last are the bills of materials
		want = append(want, ext, ext)
	}
	got = slices.DeleteFunc(got, func(ext string) bool { return ext == ".yaml" }) // the manifests
	slices.SortFunc(got, cmp.Compare[string])
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s is of files %q, want %q", sums, got, want)
	}
	check := strings.NewReplacer("SHA256SUMS", "").Replace(sums)
	output(t, "sh", "-c", "cd "+check+" && sha256sum --check --quiet --ignore-missing SHA256SUMS")
}
