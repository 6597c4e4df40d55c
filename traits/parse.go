package traits

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Error is a syntax error in a list of devices.
type Error struct {
	// Text is the whole text that was parsed.
	Text string
	// Offset is the byte in Text at which the error is.
	Offset int
	// Problem says what is wrong, or what is expected, at Offset.
	Problem string
}

// Error quotes the text, and its beginning at Offset.
func (e *Error) Error() string {
	const excerpt = 16 // bytes
	at := "its end"
	if rest := e.Text[e.Offset:]; len(rest) > excerpt {
		at = fmt.Sprintf("%q…", rest[:excerpt])
	} else if rest != "" {
		at = strconv.Quote(rest)
	}
	return fmt.Sprintf("%q: byte %d, at %s: %s", e.Text, e.Offset, at, e.Problem)
}

// ParseAvailable reads a value of OMP_AVAILABLE_DEVICES. The error is an *Error.
func ParseAvailable(text string) (*Available, error) {
	p := parser{text: text, every: true}
	a := &Available{}
	err := p.list(func() error {
		i, err := p.item()
		a.items = append(a.items, i)
		return err
	})
	if err != nil {
		return nil, err
	}
	return a, nil
}

// ParseDefault reads a value of OMP_DEFAULT_DEVICE. The error is an *Error.
func ParseDefault(text string) (*Default, error) {
	p := parser{text: text, host: true}
	d := &Default{}
	err := p.list(func() error {
		c, err := p.choice()
		d.choices = append(d.choices, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// maxDepth is the deepest nesting of parentheses and !.
const maxDepth = 100

// parser parses text; at is the offset of the next byte.
type parser struct {
	text string
	at   int
	// every allows the item "*". host allows the host as a device, and numbers.
	every, host bool
	depth       int
}

// bare reports whether r may be part of a name without quotes.
func bare(r rune) bool {
	return r == '_' || r == '-' || r == '.' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

func (p *parser) errorf(at int, format string, args ...any) error {
	return &Error{p.text, at, fmt.Sprintf(format, args...)}
}

func (p *parser) space() {
	p.at = len(p.text) - len(strings.TrimLeft(p.text[p.at:], " \t\n\v\f\r"))
}

// accept consumes a token if it comes next, and reports whether it did.
func (p *parser) accept(token string) bool {
	p.space()
	if !strings.HasPrefix(p.text[p.at:], token) {
		return false
	}
	p.at += len(token)
	return true
}

// peek reports whether a token comes next.
func (p *parser) peek(token string) bool {
	p.space()
	return strings.HasPrefix(p.text[p.at:], token)
}

// want consumes a token; it is an error if another comes next.
func (p *parser) want(token string) error {
	if !p.accept(token) {
		return p.errorf(p.at, "want %q", token)
	}
	return nil
}

// word consumes a name without quotes and returns it, "" if none comes next.
func (p *parser) word() string {
	p.space()
	start := p.at
	for p.at < len(p.text) && bare(rune(p.text[p.at])) {
		p.at++
	}
	return p.text[start:p.at]
}

// number consumes a non-negative integer if one comes next.
func (p *parser) number() (n int64, ok bool, err error) {
	p.space()
	start := p.at
	for p.at < len(p.text) && '0' <= p.text[p.at] && p.text[p.at] <= '9' {
		p.at++
	}
	if p.at == start {
		return 0, false, nil
	}
	u, err := strconv.ParseUint(p.text[start:p.at], 10, 31)
	if err != nil {
		return 0, false, p.errorf(start, "the number is too large: want 2147483647 at most")
	}
	return int64(u), true, nil
}

// list parses items separated by commas up to the end of the text.
func (p *parser) list(item func() error) error {
	for {
		if err := item(); err != nil {
			return err
		}
		if p.accept(",") {
			continue
		}
		if p.at < len(p.text) {
			return p.errorf(p.at, "want a comma or the end")
		}
		return nil
	}
}

// choice parses an item of OMP_DEFAULT_DEVICE.
func (p *parser) choice() (choice, error) {
	p.space()
	start := p.at
	if n, ok, err := p.number(); ok || err != nil {
		return choice{kind: ChooseDevice, number: int(n)}, err
	}
	if kind, ok := words[strings.ToLower(p.word())]; ok {
		return choice{kind: kind}, nil
	}
	p.at = start
	i, err := p.item()
	return choice{item: i}, err
}

func (p *parser) item() (i item, err error) {
	single := true
	if p.every && p.accept("*") {
		i.of = every{}
	} else if i.of, single, err = p.expression(); err != nil {
		return item{}, err
	}
	if !p.peek("[") {
		return i, nil
	}
	if !single {
		return item{}, p.errorf(p.at, "want parentheses around an expression with a subscript")
	}
	i.which, err = p.subscript()
	return i, err
}

// expression parses operands and operators. single says that there is one operand.
func (p *parser) expression() (e expression, single bool, err error) {
	first, err := p.operand()
	if err != nil {
		return nil, false, err
	}
	operator := p.operator()
	if operator == "" {
		return first, true, nil
	}
	of := []expression{first}
	for {
		if next := p.operator(); next == "" {
			break
		} else if next != operator {
			return nil, false, p.errorf(p.at, "want parentheses where both && and || are used")
		}
		p.accept(operator)
		e, err := p.operand()
		if err != nil {
			return nil, false, err
		}
		of = append(of, e)
	}
	if operator == "&&" {
		return all(of), false, nil
	}
	return some(of), false, nil
}

// operator returns the operator that comes next, "" if there is none.
func (p *parser) operator() string {
	for _, o := range []string{"&&", "||"} {
		if p.peek(o) {
			return o
		}
	}
	return ""
}

func (p *parser) operand() (expression, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.errorf(p.at, "want no more than %d levels of parentheses and !", maxDepth)
	}
	defer func() { p.depth-- }()
	switch {
	case p.accept("!"):
		e, err := p.operand()
		return not{e}, err
	case p.accept("("):
		e, _, err := p.expression()
		if err != nil {
			return nil, err
		}
		return e, p.want(")")
	}
	return p.trait()
}

func (p *parser) trait() (expression, error) {
	p.space()
	start := p.at
	t := trait{name: strings.ToLower(p.word())}
	switch t.name {
	case "kind", "isa", "arch", "vendor", "uid":
	case "device_num":
		if !p.host {
			return nil, p.errorf(start, "device_num is for OMP_DEFAULT_DEVICE: want kind, isa, arch, vendor or uid")
		}
	default:
		return nil, p.errorf(start, "%s", p.wantItem())
	}
	if err := p.want("("); err != nil {
		return nil, err
	}
	p.space()
	value := p.at
	if t.name == "device_num" {
		n, ok, err := p.number()
		if err != nil {
			return nil, err
		} else if !ok {
			return nil, p.errorf(value, "want a device number")
		}
		t.number = int(n)
		return t, p.want(")")
	}
	var err error
	if t.value, err = p.name(); err != nil {
		return nil, err
	}
	if t.name == "kind" {
		kind := strings.ToLower(t.value)
		if !slices.Contains(Kinds, kind) {
			return nil, p.errorf(value, "want a kind: %s", strings.Join(Kinds, ", "))
		} else if kind == "host" && !p.host {
			return nil, p.errorf(value, "the host is no non-host device: want another kind")
		}
	}
	return t, p.want(")")
}

// wantItem describes what may begin an item, for errors.
func (p *parser) wantItem() string {
	const traits = "a trait: kind, isa, arch, vendor, uid"
	if p.host {
		return "want " + traits + " or device_num; or a non-negative device number, initial, invalid or default as an item"
	}
	return "want " + traits + "; or * as an item"
}

// name parses the value of a trait.
func (p *parser) name() (string, error) {
	start := p.at
	if !p.accept(`"`) {
		if w := p.word(); w != "" {
			return w, nil
		}
		return "", p.errorf(start, `want a name: letters, digits, "_", "-" and ".", or any text in double quotes`)
	}
	quoted, rest, closed := strings.Cut(p.text[p.at:], `"`)
	if !closed {
		return "", p.errorf(start, "want a closing quote")
	}
	p.at = len(p.text) - len(rest)
	return quoted, nil
}

func (p *parser) subscript() (*section, error) {
	p.accept("[")
	lower, given, err := p.number()
	if err != nil {
		return nil, err
	}
	s := &section{lower: lower, length: -1, stride: 1}
	switch {
	case p.accept(":"):
	case given:
		s.length = 1
		return s, p.want("]")
	default:
		return nil, p.errorf(p.at, "want an index or a section: [index], [lower:length] or [lower:length:stride]")
	}
	if length, given, err := p.number(); err != nil {
		return nil, err
	} else if given {
		s.length = length
	}
	if p.accept(":") {
		p.space()
		at := p.at
		if stride, given, err := p.number(); err != nil {
			return nil, err
		} else if given && stride == 0 {
			return nil, p.errorf(at, "want a positive stride")
		} else if given {
			s.stride = stride
		}
	}
	return s, p.want("]")
}
