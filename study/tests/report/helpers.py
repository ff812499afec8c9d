"""Read a page as a browser would."""

from html.parser import HTMLParser


class Page(HTMLParser):
    """What a page is made of: ids, addresses, words, and tags with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    @property
    def ids(self) -> list[str]:
        return [attrs["id"] for _, attrs in self.tags if attrs.get("id")]

    def values(self, *names: str) -> list[str]:
        return [attrs[name] for _, attrs in self.tags for name in names if attrs.get(name)]

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)
