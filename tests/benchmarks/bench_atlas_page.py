"""The page of the atlas's strings: its size, and how soon a string is drawn in a browser.

Run as a script: `python tests/benchmarks/bench_atlas_page.py`. The experiment is invented: one run
on 20,000 strings of L5, each with 24 others that its removal moves, and values of 20 measures.
Without Debian's chromium, only the size is measured.

The peer of the size is the page with the same numbers as JSON, as short as their precision allows.
Times are the page's own measures of performance, medians over 40 strings, with layout and without
paint; the peer of a drawing makes a list of all strings anew, as a page without a window would.
"""

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "workflow/scripts"))

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from rows import Row, at_most, main, shown  # noqa: E402

from palimpsest.atlas import kinds  # noqa: E402
from palimpsest.atlas.contenders import CONTENDERS, GRADIENTS  # noqa: E402
from palimpsest.atlas.strings_page import strings_page  # noqa: E402
from palimpsest.corpora import GrammarCorpus  # noqa: E402
from palimpsest.datasets.build import build  # noqa: E402
from palimpsest.datasets.sampling import Sampler  # noqa: E402

N, TINY, EPOCHS, OTHERS = 20_000, 40, 11, 24
MEGABYTES_TARGET, MILLISECONDS_TARGET = 2.0, 50.0
MARKER = "MEASURED"
# Choose strings all over the list; then once more with a list of all strings
DRIVER = """
const wait = time => new Promise(done => setTimeout(done, time));
const median = of => of.toSorted((one, other) => one - other)[Math.floor(of.length / 2)];
const times = name => performance.getEntriesByName(name).map(one => one.duration);
(async () => {
  while (!times("drawn").length) await wait(50);
  const places = Array.from({ length: 40 }, (_, n) => Math.floor(n * 0.9 * order.length / 40) + 1);
  for (const place of places) { choose(place); await wait(30); }
  const ours = median(times("drawn"));
  const all = [];
  for (const place of places.slice(0, 8)) {
    const begin = performance.now();
    draw(order[place]);
    sizer.replaceChildren(...order.map(string => element("div", columns.text[string])));
    list.scrollTop = list.scrollHeight;
    all.push(performance.now() - begin);
  }
  console.log("MEASURED " + JSON.stringify([ours, median(all), times("opened")[0]]));
})();
"""


def experiment(n: int) -> dict:
    """The arguments of `strings_page`, of one run on about n strings."""
    chance = np.random.default_rng(0)
    corpus = GrammarCorpus.from_file(ROOT / "config/languages/L5.pcfg")
    strings = build(Sampler("L5", corpus, 0), "base", n, n // 20, predict_end=False)
    run = {"model": "opt-1.3b-twin", "language": "L5", "size": n, "seed": 0}
    train = strings[strings["count"] > 0]
    ids = train["string_id"].to_numpy(dtype=object)
    size = len(ids)
    own = np.abs(0.1 + 0.05 * chance.standard_normal(size))
    falls = np.exp(-np.linspace(0, 2.5, EPOCHS))[:, None]
    loss = 0.3 + 1.9 * falls + 0.03 * chance.standard_normal((EPOCHS, size))
    grows = np.linspace(0, 1, EPOCHS)[:, None]
    noise = 0.03 * chance.standard_normal((EPOCHS, size))
    epochs = np.arange(EPOCHS) * 5
    truth = train[["string_id", "count", "log_prob"]].assign(
        self_influence=own,
        self_influence_again=own * (1 + 0.3 * chance.standard_normal(size)),
        placebo_influence=0.01 * chance.standard_normal(size),
        start=chance.choice(epochs, size),
        start_again=chance.choice(epochs, size),
    )
    curves = pd.DataFrame(
        {
            "string_id": np.tile(ids, EPOCHS),
            "epoch": np.repeat(epochs, size),
            "loss": loss.ravel(),
            "loss_without": (loss + own * grows + noise * grows).ravel(),
            "placebo_loss": (loss + 0.1).ravel(),
        }
    )
    # Twice the same pair would be no matrix: strides that differ within a string
    strides = 1 + np.cumsum(chance.integers(1, max(2, size // OTHERS), (size, OTHERS)), axis=1)
    moved = (np.arange(size)[:, None] + strides) % size
    effect = chance.exponential(0.02, moved.shape)
    influence = pd.DataFrame(
        {
            "removed": np.repeat(ids, OTHERS),
            "string_id": ids[moved.ravel()],
            "influence": effect.ravel(),
            "influence_again": (effect * chance.standard_normal(moved.shape)).ravel(),
            "edit_distance": 20,
        }
    )
    names = [*(contender.name for contender in CONTENDERS), *GRADIENTS]
    said = pd.DataFrame(
        {
            "measure": np.repeat(names, size),
            "needs": "all losses",
            "string_id": np.tile(ids, len(names)),
            "amount": chance.standard_normal(size * len(names)),
            "measured_start": chance.choice(epochs, size * len(names)),
        }
    )
    ranks = {"statistic": "rank correlation", "question": "how much", "needs": "all losses"}
    ranks |= {"value": 0.5, "lower": 0.4, "upper": 0.6, "placebo": 0.0, "cost": 1.2}
    atlas = pd.DataFrame({"measure": ["retraining", *names], **ranks})
    atlas = atlas.reindex(columns=kinds.ATLAS.names)
    named = {"truth": truth, "curves": curves, "influence": influence, "contenders": said}
    tables = {name: [table.assign(**run)] for name, table in named.items()}
    return {"datasets": [strings], **tables, "atlas": [atlas.assign(model=run["model"])]}


def as_json(page: str) -> int:
    """Bytes of the page if its numbers were JSON, with as many digits as their steps need."""
    (cells,) = re.findall(r'id="cells">(.*?)</script>', page)
    packed = re.findall(r'id="cell-\d+">(.*?)</script>', page)
    size = len(page)
    for about, data in zip(json.loads(cells), packed, strict=True):
        content = zlib.decompress(base64.b64decode(data))
        size -= len(data)
        for of in about["columns"].values():
            part = content[of["at"] : of["at"] + of["n"] * of.get("width", 1)]
            if "width" not in of:
                size += len(part)
                continue
            planes = np.frombuffer(part, np.uint8).reshape(of["width"], -1).astype(int)
            codes = (planes * 256 ** np.arange(of["width"])[:, None]).sum(axis=0)
            digits = max(0, int(np.ceil(-np.log10(of["step"]))))
            values = (of["low"] + of["step"] * codes).round(digits).tolist()
            size += len(json.dumps(values, separators=(",", ":")))
    return size


def in_a_browser(page: str, folder: Path) -> list[float]:
    """Milliseconds to draw a string, of the peer, and to open a run."""
    used = re.sub(r"<meta http-equiv[^>]*>", "", page)  # the policy allows no script but the page's
    used = used.replace("</body>", f"<script>{DRIVER}</script></body>")
    (folder / "used.html").write_text(used)
    command = [
        *("chromium", "--headless", "--no-sandbox", "--enable-logging=stderr"),
        *(f"--user-data-dir={folder / 'home'}", "--remote-debugging-port=0"),
        *("--window-size=1500,950", f"file://{folder / 'used.html'}"),
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as browser:
        try:
            line = next(line for line in browser.stderr if MARKER in line)
        finally:
            browser.terminate()
    return json.loads(re.search(rf"{MARKER} (\[.*?\])", line)[1])


def rows(tiny: bool) -> Iterator[Row]:
    """All rows."""
    n = TINY if tiny else N
    given = experiment(n)
    n = len(given["truth"][0])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "strings.html"
        strings_page(str(path), **given)
        page = path.read_text()
        sizes = path.stat().st_size / 1e6, as_json(page) / 1e6
        yield at_most(f"a page of {n:,} strings; peer: JSON", *sizes, "MB", MEGABYTES_TARGET)
        if shutil.which("chromium"):
            ours, peer, opened = in_a_browser(page, Path(folder))
            what = "  a string is drawn; peer: a list of all"
            yield at_most(what, ours, peer, "ms", MILLISECONDS_TARGET)
            yield shown("  the run is opened, once", opened, np.nan, "ms", np.nan)


if __name__ == "__main__":
    sys.exit(main(rows))
