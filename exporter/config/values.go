package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/gpumeter/gpumeter/spell"
)

// value reads the text of a setting, and says in one way for all kinds what is wrong with it.
type value struct {
	kong.Mapper
	kind string // what the text should be
}

// truth is a value that needs no text on the command line.
type truth struct{ value }

// IsBool tells kong so.
func (truth) IsBool() bool { return true }

// values are the readers of the kinds of setting there are.
func values() []kong.Option {
	known := kong.NewRegistry().RegisterDefaults()
	of := func(t reflect.Type, kind string) value { return value{known.ForType(t), kind} }
	return []kong.Option{
		kong.TypeMapper(reflect.TypeFor[time.Duration](), of(reflect.TypeFor[time.Duration](), "duration")),
		kong.KindMapper(reflect.Int, of(reflect.TypeFor[int](), "number")),
		kong.KindMapper(reflect.Uint64, of(reflect.TypeFor[uint64](), "number")),
		kong.KindMapper(reflect.String, of(reflect.TypeFor[string](), "text")),
		kong.KindMapper(reflect.Bool, truth{of(reflect.TypeFor[bool](), "value")}),
	}
}

// Decode reads the next text.
func (v value) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	token := ctx.Scan.Peek()
	text := fmt.Sprint(token.Value)
	if token.IsEOL() {
		text = ""
	}
	err := v.Mapper.Decode(ctx, target)
	enum := ctx.Value.EnumSlice()
	switch {
	case err != nil && !token.IsValue():
		return fmt.Errorf("the value is missing; write %s=VALUE", ctx.Value.ShortSummary())
	case err != nil && v.kind == "value":
		return fmt.Errorf("invalid value %q; use true or false", text)
	case err != nil:
		return fmt.Errorf("invalid %s %q", v.kind, text)
	case ctx.Value.Enum != "" && !slices.Contains(enum, text):
		return fmt.Errorf("invalid value %q%s; use %s", text, spell.Suggest(text, enum), orList(enum))
	}
	return nil
}

// orList writes words as one says them: a, b or c.
func orList(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// readable reads a value of the environment or the file as the flag would, and returns what is wrong with it.
func readable(flag *kong.Flag, text any) error {
	scan := kong.Scan().PushTyped(text, kong.FlagValueToken)
	return flag.Mapper.Decode(&kong.DecodeContext{Value: flag.Value, Scan: scan}, reflect.New(flag.Target.Type()).Elem())
}
