package expect

import (
	"slices"
	"testing"
)

func TestExpectations(t *testing.T) {
	const page = `# TYPE up gauge
up{gpu="0",model="a, b"} 1
up{gpu="1",model="c"} 0
watts{gpu="0"} 700
`
	for text, want := range map[string]string{
		`up`:                             "",
		`up{gpu="1"} == 0`:               "",
		`up{gpu="1"}==0`:                 "",
		`up{gpu=~"[01]"} <= 1`:           "",
		`up{gpu!~"[12]"} > 0`:            "",
		`up{gpu!="1",model="a, b"} != 0`: "",
		`watts >= 200+500`:               "",
		`!down`:                          "",
		`!up{gpu="2"}`:                   "",
		`!{gpu="1",__name__!="up"}`:      "",
		`!up < 0`:                        "",
		`up == 1`:                        `up == 1: it is {__name__="up", gpu="1", model="c"} 0`,
		`up{gpu="2"}`:                    `up{gpu="2"}: there is none`,
		`up{gpu="2"} == 1`:               `up{gpu="2"} == 1: there is none`,
		`!watts`:                         `!watts: it is {__name__="watts", gpu="0"} 700`,
		`!up == 0`:                       `!up == 0: it is {__name__="up", gpu="1", model="c"} 0`,
		`watts > 700`:                    `watts > 700: it is {__name__="watts", gpu="0"} 700`,
		`== 1`:                           `== 1: not a selector, and a comparison behind it`,
		`up is 1`:                        `up is 1: not a selector, and a comparison behind it`,
		`up{gpu=1}`:                      `up{gpu=1}: gpu=1 is no label`,
		`up == one`:                      `up == one: strconv.ParseFloat: parsing "one": invalid syntax`,
	} {
		samples, err := readPage(page)
		if err != nil {
			t.Fatal(err)
		}
		e, err := read(text)
		got := e.unmet(samples)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
	if _, err := readPage("up{\n"); err == nil {
		t.Error("a page that does not parse was taken")
	}
}

func TestLacking(t *testing.T) {
	const page = "# TYPE up gauge\nup{gpu=\"0\"} 1\nup{gpu=\"1\"} 0\n"
	got, err := Lacking(page, `up{gpu="0"} == 1`, `up == 1`)
	if want := []string{`up == 1: it is {__name__="up", gpu="1"} 0`, "\t" + `{__name__="up", gpu="0"} 1`, "\t" + `{__name__="up", gpu="1"} 0`}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v\nwant %q", got, err, want)
	}
	if _, err := Lacking("up{\n", "up"); err == nil {
		t.Error("a page that does not parse was taken")
	}
	if _, err := Lacking(page, "up is 1"); err == nil {
		t.Error("what is no selector was taken")
	}
}

func TestValue(t *testing.T) {
	const page = "up{gpu=\"0\"} 1\nup{gpu=\"1\"} 0.5\n"
	if got, err := Value(page, `up{gpu="1"}`); got != 0.5 || err != nil {
		t.Errorf("got %v, %v, want 0.5", got, err)
	}
	if got, err := Sum(page, "up"); got != 1.5 || err != nil {
		t.Errorf("got %v, %v in all, want 1.5", got, err)
	}
	if got, err := Sum(page, "up is 1"); err == nil {
		t.Errorf("got %v, want an error", got)
	}
	for _, selector := range []string{"up", `up{gpu="2"}`, "up is 1"} {
		if got, err := Value(page, selector); err == nil {
			t.Errorf("%s: got %v, want an error", selector, got)
		}
	}
}
