"""The parsers there are: one that reads any shop, and in time some for one shop each."""

from __future__ import annotations

from dataclasses import dataclass

from extraction.items import PARSER_VERSION


@dataclass(frozen=True, slots=True)
class Parser:
    name: str
    version: str
    description: str


PARSERS = {
    parser.name: parser
    for parser in (
        Parser("generic", PARSER_VERSION, "Reads the structured data that shops publish."),
    )
}
