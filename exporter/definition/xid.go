package definition

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// xid is one of NVIDIA's XID errors.
type xid struct {
	Code     int      `json:"xid"`
	Mnemonic string   `json:"name"`
	Brief    string   `json:"brief"`
	Severity string   `json:"severity"`
	Who      string   `json:"who"`
	Action   string   `json:"action"`
	Advice   string   `json:"advice"`
	Note     string   `json:"note,omitempty"`
	Series   []string `json:"series" yaml:"-"`
	Source   string   `json:"source" yaml:"-"`

	does string // what the action is
}

var xidName = regexp.MustCompile(`^(?i:xid[-_ ]?)?([0-9]{1,6})$`)

// xidCode returns the code of a name such as 79 or xid79.
func xidCode(name string) (code int, ok bool) {
	parts := xidName.FindStringSubmatch(name)
	if parts == nil {
		return 0, false
	}
	code, err := strconv.Atoi(parts[1])
	return code, err == nil
}

// xid returns the error with this code.
func (x *index) xid(code int) (xid, error) {
	var file struct {
		Source string
		Date   string
		XIDs   []xid
	}
	if err := read(x.root, "spec/data/xids.yaml", &file); err != nil {
		return xid{}, err
	}
	i := slices.IndexFunc(file.XIDs, func(o xid) bool { return o.Code == code })
	if i < 0 {
		return xid{}, fmt.Errorf("%w %q: NVIDIA's catalogue of %s has no such XID error", ErrName, strconv.Itoa(code), file.Date)
	}
	out := file.XIDs[i]
	out.Source = file.Source + ", " + file.Date
	for _, m := range x.spec.attributes["gpu.xid_action"].Members {
		if m.ID == out.Action {
			out.does = m.Brief
		}
	}
	for _, d := range x.metrics {
		if slices.ContainsFunc(d.Labels, func(l label) bool { return l.Name == "gpu_xid" }) {
			out.Series = append(out.Series, fmt.Sprintf("%s{gpu_xid=%q}", d.Prometheus, strconv.Itoa(code)))
		}
	}
	return out, nil
}

// text writes all there is to say of it.
func (x *xid) text(b *bytes.Buffer) {
	fmt.Fprintf(b, "XID %d: %s\n", x.Code, x.Mnemonic)
	wrap(b, "  ", "  ", x.Brief)
	wrap(b, "  ", "  ", x.Note)
	b.WriteByte('\n')
	rows := [][2]string{{"Severity", x.Severity}, {"Action", join(x.Action, ": ", x.does)}, {"Who acts", x.Who}, {"Advice", x.Advice}}
	for _, s := range x.Series {
		rows = append(rows, [2]string{"Series", s})
	}
	table(b, "  ", append(rows, [2]string{"Source", x.Source}))
}
