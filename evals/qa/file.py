"""The question file: ``<evaluation><qa_pair><question>…</question><answer>…</answer></qa_pair>…</evaluation>``.

Questions and answers are trimmed at both ends; what is inside, line breaks too, stays as written (CDATA or not).
Attributes and elements the format does not know are kept out and noted; a pair, question or answer that would be left
out with them, or is spelt otherwise, is an error. A document type declaration is refused whole: it is where external
entities and entity bombs are declared, and the format needs none.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from evals.errors import TwogateError

ROOT, PAIR, QUESTION, ANSWER = "evaluation", "qa_pair", "question", "answer"
MAX_BYTES = 16 * 1024 * 1024

_BOMS = (  # the longer ones first: UTF-32 LE starts with the mark of UTF-16 LE
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARED = re.compile(rb"""\A\s*<\?xml\s[^>]*?\bencoding\s*=\s*["']([A-Za-z][A-Za-z0-9._:-]*)["']""")


@dataclass(frozen=True)
class QaPair:
    """A question with its one answer."""

    number: int
    """1 for the file's first pair."""
    question: str
    answer: str
    line: int
    """Of the pair's start tag, from 1."""
    answer_span: tuple[int, int] = field(default=(0, 0), compare=False)
    """Where the answer's content stands in `QaFile.source`, in bytes."""


@dataclass(frozen=True)
class QaFile:
    """A valid question file. `source` is its text as UTF-8 bytes, without a byte order mark."""

    path: Path
    pairs: tuple[QaPair, ...]
    notes: tuple[str, ...]
    """What was kept out, one line each."""
    source: bytes = field(repr=False)


def load_qa(path: Path) -> QaFile:
    """Read a question file. Raises TwogateError with every problem, one line each, with the pair's number."""
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise TwogateError(f"{path}: has {size:,} bytes, over the {MAX_BYTES:,} that are read; split it")
        data = path.read_bytes()
    except OSError as error:
        raise TwogateError(f"{path}: cannot be read: {error.strerror}; give the path of a question file") from None
    return parse_qa(data, path)


def parse_qa(data: bytes, path: Path) -> QaFile:
    """A question file from its bytes; `path` stands for it in messages. Raises TwogateError like `load_qa`."""
    source = _decode(data, path).encode("utf-8", errors="surrogatepass")
    if not source.strip():
        raise TwogateError(f"{path}: is empty; write <{ROOT}><{PAIR}><{QUESTION}>…</{QUESTION}>…</{PAIR}></{ROOT}>")
    reader = _Reader(source, path)
    reader.read()
    problems, pairs = _check(reader, path)
    if problems:
        raise TwogateError(problems)
    return QaFile(path=path, pairs=tuple(pairs), notes=tuple(_notes(reader, path)), source=source)


def is_placeholder(text: str) -> bool:
    """Whether a text only holds the place of a question or an answer: `TODO`, `...`, `[answer here]`."""
    text = text.strip()
    if _PLACEHOLDER_MARKS.fullmatch(text) or _PLACEHOLDER_TODO.match(text):
        return True
    bare = " ".join(re.sub(r"[\W_]+", " ", text).casefold().split())
    bracketed = len(text) >= 2 and (text[0], text[-1]) in (("[", "]"), ("<", ">"), ("{", "}"))
    return bare in _PLACEHOLDER_TEXTS or (bracketed and _PLACEHOLDER_WORD.search(bare) is not None)


_PLACEHOLDER_MARKS = re.compile(r"\.{2,}|…+|\?{2,}|_{2,}|-{3,}|\[[.…]+\]")
_PLACEHOLDER_TODO = re.compile(r"(?:TODO|FIXME|TBD|TBC|XXX)\s*(?::|$|-\s|\()", re.IGNORECASE)
_PLACEHOLDER_WORD = re.compile(r"\b(?:answer|question|placeholder|insert|fill in|your|to ?do)\b")
_PLACEHOLDER_TEXTS = frozenset(
    line.strip()
    for line in """
        answer
        answer goes here
        answer here
        expected answer
        expected answer here
        insert answer
        insert answer here
        single verifiable answer
        the answer
        write answer here
        your answer
        your answer here
        question
        question goes here
        question here
        the question
        your question
        your question here
        fill in
        fill me in
        lorem ipsum
        placeholder
        to be determined
        to be done
        to do
    """.splitlines()
    if line.strip()
)


def _decode(data: bytes, path: Path) -> str:
    """The text, by its byte order mark, else its declaration, else as UTF-8."""
    encoding = next((name for mark, name in _BOMS if data.startswith(mark)), None)
    if encoding is None and data[:4] in (b"<\x00?\x00", b"\x00<\x00?"):
        encoding = "utf-16-le" if data[:1] == b"<" else "utf-16-be"
    declared = _DECLARED.match(data)
    if encoding is None:
        encoding = declared[1].decode("ascii") if declared is not None else "utf-8"
    try:
        return data.decode(encoding)
    except LookupError:
        problem = f"{path}: declares the encoding {encoding!r}, which is not known; save it as UTF-8"
    except UnicodeError as error:
        where = f" at byte {error.start}" if isinstance(error, UnicodeDecodeError) else ""
        how = "save it as UTF-8, or declare its encoding" if declared is None else "declare the one it is saved in"
        problem = f"{path}: is not {encoding} text{where}; {how}"
    raise TwogateError(problem)


@dataclass
class _Draft:
    """A pair while it is read: each text with its span, in the order they stand."""

    line: int
    questions: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    answer_spans: list[tuple[int, int]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class _Reader:
    """Expat's events as pairs. Not recursive: nesting costs no stack."""

    def __init__(self, source: bytes, path: Path) -> None:
        self._source = source
        self._path = path
        self.root = ""
        self.drafts: list[_Draft] = []
        self.unknown: Counter[str] = Counter()
        self.attributes: Counter[str] = Counter()
        self.stray: list[int] = []
        self.misplaced: list[str] = []
        self._open: list[str] = []
        self._text: list[str] | None = None
        self._start = 0
        # The text was decoded before; an encoding the file declares no longer holds.
        self._parser = parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartElementHandler = self._begin
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters

    def read(self) -> None:
        try:
            self._parser.Parse(self._source, True)
        except expat.ExpatError as error:
            reason = expat.errors.messages.get(error.code, "malformed")
            hint = {
                expat.errors.codes[expat.errors.XML_ERROR_INVALID_TOKEN]: (
                    "write & as &amp; and < as &lt;, or use CDATA, and no -- in a comment"
                ),
                expat.errors.codes[expat.errors.XML_ERROR_UNDEFINED_ENTITY]: "write the character itself",
                expat.errors.codes[expat.errors.XML_ERROR_TAG_MISMATCH]: (
                    "close every element in order, and write < in a text as &lt;"
                ),
            }.get(error.code, "mend it there")
            raise TwogateError(
                f"{self._path}: is not XML: {reason} at line {error.lineno}, column {error.offset + 1}; {hint}"
            ) from None

    def _doctype(self, *_: object) -> None:
        raise TwogateError(
            f"{self._path}: line {self._parser.CurrentLineNumber}: has a document type declaration, which may declare "
            "entities and is never read; remove <!DOCTYPE …> and write the characters themselves"
        )

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        self._open.append(name)
        line = self._parser.CurrentLineNumber
        self.attributes.update(one for one in attributes if not one.startswith("xml"))
        match self._open:
            case [_]:
                self.root = name
            case [_, "qa_pair"]:
                self.drafts.append(_Draft(line))
            case [_, "qa_pair", "question" | "answer"]:
                self._text = []
                self._start = self._after_tag()
            case [_, "qa_pair", "question" | "answer" as inside, _]:
                self.drafts[-1].problems.append(
                    f"{inside}: holds the element <{name}> (line {line}); write < as &lt;, or put the text in CDATA"
                )
            case [*_, last] if last.casefold() in (PAIR, QUESTION, ANSWER):
                # Left out with a note alone, it would be missed among the questions that count.
                self.misplaced.append(_misplaced(self._open, line))
            case [_, _] | [_, "qa_pair", _]:
                self.unknown[name] += 1

    def _after_tag(self) -> int:
        """The offset after the start tag that is being read; expat says where it begins only."""
        index = self._parser.CurrentByteIndex
        quote = b""
        while True:
            char = self._source[index : index + 1]
            if quote:
                quote = b"" if char == quote else quote
            elif char in (b'"', b"'"):
                quote = char
            elif char == b">":
                return index + 1
            index += 1

    def _end(self, name: str) -> None:
        if self._text is not None and len(self._open) == 3:
            draft, text = self.drafts[-1], "".join(self._text).strip()
            if name == QUESTION:
                draft.questions.append(text)
            else:
                draft.answers.append(text)
                draft.answer_spans.append((self._start, self._parser.CurrentByteIndex))
            self._text = None
        self._open.pop()

    def _characters(self, text: str) -> None:
        if self._text is not None:
            if len(self._open) == 3:
                self._text.append(text)
        elif self._open[1:] in ([], [PAIR]) and text.strip():
            self.stray.append(self._parser.CurrentLineNumber)


def _misplaced(open_elements: list[str], line: int) -> str:
    """Why an element that is a pair's, or one by another spelling, cannot be read where it stands."""
    name, parent = open_elements[-1], open_elements[-2]
    right = name.casefold()
    home = ROOT if right == PAIR else PAIR
    if name != right:
        return f"line {line}: <{name}> is not <{right}>; write it so"
    return f"line {line}: <{name}> stands in <{parent}>, where it would not be read; put it into <{home}>"


def _check(reader: _Reader, path: Path) -> tuple[list[str], list[QaPair]]:
    if reader.root != ROOT:
        return [f"{path}: its root element is <{reader.root}>; it must be <{ROOT}>"], []
    if not reader.drafts and not reader.misplaced:
        return [f"{path}: has no pairs; add <{PAIR}><{QUESTION}>…</{QUESTION}><{ANSWER}>…</{ANSWER}></{PAIR}>"], []
    problems = [f"{path}: {one}" for one in reader.misplaced]
    pairs: list[QaPair] = []
    for number, draft in enumerate(reader.drafts, start=1):
        found = [*draft.problems, *_text_problems(QUESTION, draft.questions), *_text_problems(ANSWER, draft.answers)]
        problems += [f"{path}: pair {number} (line {draft.line}): {problem}" for problem in found]
        if not found:
            pairs.append(QaPair(number, draft.questions[0], draft.answers[0], draft.line, draft.answer_spans[0]))
    return problems, pairs


def _text_problems(name: str, texts: list[str]) -> Iterable[str]:
    if not texts:
        yield f"{name}: is missing; add <{name}>…</{name}>"
    elif len(texts) > 1:
        yield f"{name}: stands {len(texts)} times; keep one"
    elif not texts[0]:
        yield f"{name}: is empty; write it"
    elif is_placeholder(texts[0]):
        yield f"{name}: is the placeholder {texts[0]!r}; write the real one"


def _notes(reader: _Reader, path: Path) -> Iterable[str]:
    if reader.unknown:
        names = ", ".join(f"<{name}> ({count})" for name, count in sorted(reader.unknown.items()))
        yield f"{path}: elements that are not of the format are left out: {names}"
    if reader.attributes:
        names = ", ".join(f"{name} ({count})" for name, count in sorted(reader.attributes.items()))
        yield f"{path}: attributes are left out: {names}"
    if reader.stray:
        yield f"{path}: text outside questions and answers is left out: line {', '.join(map(str, reader.stray[:5]))}"
