package kubernetes

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/validate/content"
)

// The longest that are read, in bytes. Those Kubernetes has no limit for are far above what is seen.
const (
	longestName      = 253
	longestResource  = 317
	longestRaw       = 512
	longestUID       = 64
	containerIDBytes = 64
)

// The validity of names is Kubernetes' own. Lengths come first, since its expressions read all of a string.

func isPodName(s string) bool {
	return len(s) <= longestName && len(content.IsDNS1123Subdomain(s)) == 0
}

func isNamespace(s string) bool {
	return len(s) <= longestName && len(content.IsDNS1123Label(s)) == 0
}

func isContainerName(s string) bool { return isNamespace(s) }

func isResource(s string) bool {
	return len(s) <= longestResource && len(content.IsLabelKey(s)) == 0
}

func isLabel(name, value string) bool {
	return len(name) <= longestResource && len(value) <= 63 && len(content.IsLabelKey(name)) == 0 && len(content.IsLabelValue(value)) == 0
}

func isAnnotation(name, value string) bool {
	return len(name) <= longestResource && len(value) <= longestNote && utf8.ValidString(value) && len(content.IsLabelKey(name)) == 0
}

// isOwner lets names of any kind pass, which need not be those of DNS.
func isOwner(o Owner) bool {
	return len(o.Kind) <= 63 && words(o.Kind, "") && o.Name != "" && len(o.Name) <= longestName && words(o.Name, "-._:") &&
		len(o.Group) <= longestName && (o.Group == "" || words(o.Group, "-."))
}

func isUID(s string) bool { return len(s) <= longestUID && words(s, "-") }

// isRaw says whether an id, or an image, can be shown: it is of no known form, and yet not any bytes.
func isRaw(s string) bool {
	return s != "" && len(s) <= longestRaw && !strings.ContainsFunc(s, func(c rune) bool { return c == utf8.RuneError || !unicode.IsPrint(c) })
}

// words says whether a string is of ASCII letters, digits and some more, and not empty.
func words(s, more string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune(more, c))
	})
}

// containerID is what follows the runtime's name: containerd://3f1c….
func containerID(s string) string {
	_, id, ok := strings.Cut(s, "://")
	if !ok || len(id) != containerIDBytes || strings.Trim(id, "0123456789abcdef") != "" {
		return ""
	}
	return id
}
