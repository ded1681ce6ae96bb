package emit

import "testing"

func TestEscaping(t *testing.T) {
	if got, want := Prose(" a|b\nc <d> *e* "), `a\|b c &lt;d> \*e\*`; got != want {
		t.Errorf("prose: %q, want %q", got, want)
	}
	if got, want := Code("a|b`c<"), "`a\\|b'c<`"; got != want {
		t.Errorf("code: %q, want %q", got, want)
	}
}
