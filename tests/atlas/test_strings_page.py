"""The page of the atlas's strings: what it holds, and its use in a browser."""

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.atlas_worlds import EPOCHS, planted_run, tables_of
from helpers.experiments import message
from helpers.reports import Page, Unfolded
from palimpsest.atlas import strings_page
from palimpsest.atlas.packed import MOST, Packer
from palimpsest.atlas.strings_page import SHORT, WHOLE, short_ids

MODELS = ("m", "<b>n")


@pytest.fixture(scope="module")
def runs():
    return [planted_run(seed) for seed in (0, 1)]


@pytest.fixture(scope="module")
def made(runs):
    """The arguments of the function `strings_page`: two models with the same strings."""
    found = tables_of(runs)
    names = {"truth": "retrained", **{name: name for name in ("curves", "influence")}}
    names |= {name: name for name in ("contenders", "atlas")}
    cells = {
        argument: [found[name].assign(model=model) for model in MODELS]
        for argument, name in names.items()
    }
    return {"datasets": [run.strings for run in runs], **cells}


@pytest.fixture(scope="module")
def path(made, tmp_path_factory):
    path = tmp_path_factory.mktemp("atlas") / "strings.html"
    strings_page.strings_page(str(path), **made)
    return path


@pytest.fixture(scope="module")
def text(path):
    return path.read_text()


def read(text: str) -> list[dict]:
    """The runs of a page, with their unpacked `columns`."""
    (cells,) = re.findall(r'<script type="application/json" id="cells">(.*?)</script>', text)
    packed = re.findall(r'<script type="text/plain" id="cell-\d+">(.*?)</script>', text)
    return [
        {**about, "columns": unpacked(zlib.decompress(base64.b64decode(data)), about["columns"])}
        for about, data in zip(json.loads(cells), packed, strict=True)
    ]


def unpacked(content: bytes, columns: dict) -> dict:
    found = {}
    for name, of in columns.items():
        part = content[of["at"] : of["at"] + of["n"] * of.get("width", 1)]
        if "width" not in of:
            found[name] = json.loads(part)
            continue
        planes = np.frombuffer(part, np.uint8).reshape(of["width"], -1).astype(float)
        codes = (planes * 256.0 ** np.arange(of["width"])[:, None]).sum(axis=0)
        found[name] = np.where(codes == of["none"], np.nan, of["low"] + of["step"] * codes)
    if "letters" in found:
        found["text"] = [" ".join(letters) for letters in found["letters"]]
    return found


@given(
    values=st.lists(st.floats(-1e6, 1e6) | st.just(np.nan), max_size=30),
    step=st.sampled_from([0.001, 0.5, 1.0]),
)
def test_packed_numbers_are_right_to_half_a_step(values, step):
    packer = Packer()
    packer.texts("before", ["ä", "<"])
    packer.numbers("values", values, step)
    content = zlib.decompress(base64.b64decode(packer.base64()))
    found = unpacked(content, packer.columns)
    known = np.array(values)[~np.isnan(values)]
    allowed = max(step, (np.ptp(known) if len(known) else 0) / MOST) / 2
    assert found["values"] == pytest.approx(np.array(values), abs=allowed * 1.001, nan_ok=True)
    assert found["before"] == ["ä", "<"]


def test_identifiers_are_as_short_as_links_allow():
    assert short_ids(["abcdef12", "abcdefg3"]) == ["abcdef1", "abcdefg"]
    assert short_ids(["abcdefgh", "bbcdefgh"]) == ["abcdef", "bbcdef"]
    assert short_ids(["a", "b"]) == ["a", "b"]


def test_the_page_has_every_run_with_its_strings(text, runs):
    found = read(text)
    expected = [(model, seed) for model in MODELS for seed in (0, 1)]
    assert [(one["model"], one["seed"]) for one in found] == expected
    for one in found:
        strings = runs[one["seed"]].strings
        train = strings[strings["count"] > 0]
        assert one["columns"]["text"] == train["text"].tolist()
        assert one["columns"]["count"] == pytest.approx(train["count"].to_numpy())
        optimal = train["optimal_loss"].to_numpy()
        assert one["columns"]["optimal_loss"] == pytest.approx(optimal, abs=1e-4)
        assert one["epochs"] == EPOCHS.tolist()


def test_curves_and_thresholds_are_those_of_the_runs(text, runs):
    for one in read(text)[:2]:
        run, columns, n = runs[one["seed"]], one["columns"], one["n"]
        loss = run.trace.loss[:, run.trace.column_of(run.ids)]
        assert columns["loss"].reshape(-1, n) == pytest.approx(loss, abs=1e-4)
        grows = np.linspace(0, 1, len(EPOCHS))[:, None] * np.diag(run.influence)
        assert columns["rise_without"].reshape(-1, n) == pytest.approx(grows, abs=1e-4)
        assert columns["lowest_without"] == pytest.approx((loss + grows).min(axis=0), abs=1e-4)
        assert columns["self_influence"] == pytest.approx(np.diag(run.influence), abs=1e-4)
        assert columns["placebo_influence"] == pytest.approx(run.moved, abs=1e-4)
        placebos = columns["placebo_loss"].reshape(len(EPOCHS), -1)
        placebos = placebos[:, columns["placebo"].astype(int)]
        unseen = run.strings["string_id"][run.strings["count"] == 0]
        every = run.trace.loss[:, run.trace.column_of(unseen)]
        near = np.abs(placebos[:, :, None] - every[:, None, :]).max(axis=0).min(axis=1)
        assert (near < 1e-4).all(), "losses of strings that no training saw"


def test_neighbours_are_the_strongest_by_exact_influence(text, runs):
    for one in read(text)[:2]:
        planted = runs[one["seed"]].influence.copy()
        np.fill_diagonal(planted, 0)
        for name, matrix in (("raised_by", planted.T), ("raises", planted)):
            others = one["columns"][name].reshape(WHOLE.neighbours, -1).T
            values = one["columns"][f"{name}_influence"].reshape(WHOLE.neighbours, -1).T
            for of_string, found, influence in zip(matrix, others, values, strict=True):
                strongest = np.argsort(-of_string)[: WHOLE.neighbours]
                strongest = strongest[of_string[strongest] > 0]
                n = len(strongest)
                assert found[:n].tolist() == strongest.tolist()
                assert influence[:n] == pytest.approx(of_string[strongest], abs=1e-4)
                assert np.isnan(found[n:]).all()


def test_measures_have_their_ranks_costs_and_agreement(text, made):
    one = read(text)[0]
    names = [measure["name"] for measure in one["measures"]]
    values = [measure["value"] for measure in one["measures"][1:] if measure["value"] is not None]
    assert names[0] == "retraining"
    assert values == sorted(values, reverse=True), "the best one first"
    contenders = made["contenders"][0].query("seed == 0")
    assert set(names[1:]) == set(contenders["measure"])
    atlas = made["atlas"][0].query("question == 'how much' and statistic == 'rank correlation'")
    atlas = atlas.set_index("measure")
    ranks = one["columns"]["rank"].reshape(len(names), -1)
    for measure, found in list(zip(one["measures"], ranks, strict=True))[1:]:
        amount = contenders[contenders["measure"] == measure["name"]]
        amount = amount.set_index("string_id")["amount"]
        amount = amount.loc[made["truth"][0].query("seed == 0")["string_id"]]
        if amount.nunique() < 2:
            assert np.isnan(found).all(), "no rank where all are equal"
        else:
            assert found == pytest.approx(amount.rank(ascending=False).to_numpy(), nan_ok=True)
        row = atlas.loc[measure["name"]]
        assert measure["cost"] == pytest.approx(row["cost"], rel=1e-4)
        placebo = np.nan if measure["placebo"] is None else measure["placebo"]
        assert placebo == pytest.approx(row["placebo"], rel=1e-4, nan_ok=True)


def test_a_measure_that_is_undefined_stays_in_the_page(made, tmp_path):
    """Its rank and its agreement are unknown, and JSON has no NaN."""
    contenders = [
        table.assign(amount=table["amount"].mask(table["measure"] == "bayes"))
        for table in made["contenders"]
    ]
    atlas = [
        table.assign(value=table["value"].mask(table["measure"] == "bayes"))
        for table in made["atlas"]
    ]
    given_now = {**made, "contenders": contenders, "atlas": atlas}
    strings_page.strings_page(str(tmp_path / "strings.html"), **given_now)
    one = read((tmp_path / "strings.html").read_text())[0]
    place = [measure["name"] for measure in one["measures"]].index("bayes")
    assert one["measures"][place]["value"] is None
    assert np.isnan(one["columns"]["rank"].reshape(-1, one["n"])[place]).all()


def test_many_strings_are_kept_in_short(made, runs, tmp_path, monkeypatch):
    monkeypatch.setattr(strings_page, "MANY", 10)
    strings_page.strings_page(str(tmp_path / "strings.html"), **made)
    one = read((tmp_path / "strings.html").read_text())[0]
    assert len(one["columns"]["raises"]) == SHORT.neighbours * one["n"]
    loss = runs[0].trace.loss[:, runs[0].trace.column_of(runs[0].ids)]
    assert one["columns"]["loss"].reshape(-1, one["n"]) == pytest.approx(loss, abs=SHORT.loss / 2)


def test_strings_without_a_placebo_have_no_curve_of_it(made, tmp_path):
    datasets = [table[table["count"] > 0] for table in made["datasets"]]
    curves = [table.assign(placebo_loss=np.nan) for table in made["curves"]]
    given_now = {**made, "datasets": datasets, "curves": curves}
    strings_page.strings_page(str(tmp_path / "strings.html"), **given_now)
    columns = read((tmp_path / "strings.html").read_text())[0]["columns"]
    assert np.isnan(columns["placebo"]).all()
    assert len(columns["placebo_loss"]) == 0


def test_symbols_of_several_letters_keep_their_blanks(made, runs, tmp_path):
    datasets = [
        table.assign(text=table["text"].str.replace("9", "nine")) for table in made["datasets"]
    ]
    strings_page.strings_page(str(tmp_path / "strings.html"), **{**made, "datasets": datasets})
    one = read((tmp_path / "strings.html").read_text())[0]
    texts = datasets[0].set_index("string_id").loc[runs[0].ids, "text"].tolist()
    assert any("nine " in text for text in texts)
    assert one["columns"]["text"] == texts


def test_strings_that_do_not_fit_are_refused(made, runs, tmp_path):
    path = str(tmp_path / "strings.html")
    whole = runs[0].strings
    short = [whole[whole["string_id"] != runs[0].ids[0]], runs[1].strings]
    said = message(lambda: strings_page.strings_page(path, **{**made, "datasets": short}))
    assert said.startswith(f"L2, 24 strings, seed 0: the dataset lacks {runs[0].ids[0]}, which")
    said = message(lambda: strings_page.strings_page(path, **{**made, "datasets": [whole]}))
    assert said == "L2, 24 strings, seed 1: no dataset is given"


# Policy and words


def test_the_policy_allows_the_script_of_the_page_alone(text):
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert "default-src 'none'" in policy
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert not re.findall(r"\son\w+=|\ssrc=|@import|url\(", text)
    assert set(re.findall(r"https?://[^\"' ]+", text)) == {"http://www.w3.org/2000/svg"}
    assert "<b>n" not in text


def test_controls_have_names_and_the_page_one_heading(text):
    page = Page(text)
    assert page.tags.count("h1") == 1
    assert len(page.ids) == len(set(page.ids))
    assert len(re.findall(r"<label>[^<]+<(?:select|input)", text)) == 6
    assert len(re.findall(r"<(?:select|input)", text)) == 6
    for part in re.findall(r"<[^>]*tabindex=\"0\"[^>]*>", text):
        assert "role=" in part, part
        assert "aria-label=" in part, part
    assert len(Unfolded(text).text.split()) < 150, "before a string is chosen"


# In a browser

needs_chromium = pytest.mark.skipif(
    not shutil.which("chromium") and "PALIMPSEST_CI" not in os.environ, reason="needs chromium"
)
# Use the page, and note after each step what it shows
USE_OF_THE_PAGE = """
const later = () => new Promise(done => setTimeout(done, 1000));
const all = selector => [...document.querySelectorAll(selector)];
const say = () => ({
  text: $(".string .terminal").textContent,
  chosen: $(".option[aria-selected=true] span:nth-child(2)")?.textContent,
  active: document.getElementById(list.getAttribute("aria-activedescendant"))?.ariaSelected,
  shown: all(".option").length,
  count: $("output").textContent,
  curves: all(".curve polyline").length,
  focus: document.activeElement.id,
  neighbours: all("[data-neighbours=raised_by] tbody tr").map(
    row => [...row.cells].map(cell => cell.textContent)),
  link: location.hash,
  rows: all(".measures tbody tr").length,
});
const press = key => list.dispatchEvent(new KeyboardEvent("keydown", { key, cancelable: true }));
const set = (box, value) => { box.value = value; box.dispatchEvent(new Event("input")); };
(async () => {
  const found = {};
  await later(); found.opened = say();
  press("End"); await later(); found.last = say();
  press("Home"); press("ArrowDown"); await later(); found.second = say();
  $("[data-neighbours=raised_by] a").click(); await later(); found.neighbour = say();
  set(sort, [...sort.options].findIndex(option => option.text === "Number of copies"));
  press("Home"); await later(); found.sorted = say();
  set(search, found.second.text); await later(); found.searched = say();
  set(search, "no such"); await later(); found.nothing = say();
  set(search, ""); set(choices[0], "m"); await later(); found.other = say();
  document.body.dataset.found = JSON.stringify(found);
})();
"""


def seen(page, home, link=""):
    return subprocess.run(
        [
            *("chromium", "--headless", "--no-sandbox", "--enable-logging=stderr"),
            *(f"--user-data-dir={home}", "--virtual-time-budget=20000", "--dump-dom"),
            f"file://{page}{link}",
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )


@needs_chromium
def test_a_link_shows_its_string_under_the_policy(path, text, tmp_path):
    """The console stays empty; of a link to no string, a line says so."""
    one = read(text)[3]
    string = 5
    done = seen(path, tmp_path, f"#%3Cb%3En/L2/n24/seed1/{one['columns']['id'][string]}")
    assert "CONSOLE" not in done.stderr, done.stderr
    assert f'<p class="terminal">{one["columns"]["text"][string]}</p>' in done.stdout
    assert f"{one['n']} of {one['n']}</output>" in done.stdout
    done = seen(path, tmp_path, "#m/L2/n24/seed0/nosuch")
    assert "This page has no string nosuch of this run.</output>" in done.stdout
    assert "CONSOLE" not in done.stderr, done.stderr


@needs_chromium
def test_strings_are_chosen_by_keys_links_and_search(text, made, tmp_path):
    used = re.sub(r"<meta http-equiv[^>]*>", "", text)  # the policy allows no script but the page's
    used = used.replace("</body>", f"<script>{USE_OF_THE_PAGE}</script></body>")
    (tmp_path / "used.html").write_text(used)
    done = seen(tmp_path / "used.html", tmp_path, "#%3Cb%3En/L2/n24/seed1")
    assert "CONSOLE" not in done.stderr, done.stderr
    (written,) = re.findall(r'data-found="([^"]*)"', done.stdout)
    found = json.loads(written.replace("&quot;", '"').replace("&lt;", "<").replace("&amp;", "&"))
    columns = (one := read(text)[3])["columns"]
    order = np.argsort(-columns["self_influence"], kind="stable")
    for state, string in (("opened", order[0]), ("last", order[-1]), ("second", order[1])):
        said = found[state]
        assert said["text"] == said["chosen"] == columns["text"][string]
        assert said["active"] == "true"
        assert said["link"] == f"#%3Cb%3En/L2/n24/seed1/{columns['id'][string]}"
        assert said["rows"] == 1 + len(one["measures"])
        assert said["curves"] == 3
    others = columns["raised_by"].reshape(WHOLE.neighbours, -1)[:, order[1]]
    others = others[~np.isnan(others)].astype(int)
    neighbours = [columns["text"][other] for other in others]
    assert [row[0] for row in found["second"]["neighbours"]] == neighbours
    ids = made["truth"][0].query("seed == 1")["string_id"].to_numpy()
    edits = made["influence"][0].query("seed == 1").set_index(["removed", "string_id"])
    edits = edits["edit_distance"].loc[[(ids[other], ids[order[1]]) for other in others]]
    assert [int(row[3]) for row in found["second"]["neighbours"]] == edits.tolist()
    assert found["neighbour"]["text"] == found["neighbour"]["chosen"] == neighbours[0]
    assert found["neighbour"]["focus"] == "string", "where a reader goes on"
    most = np.argsort(-columns["count"], kind="stable")[0]
    assert found["sorted"]["text"] == columns["text"][most]
    assert found["searched"]["count"] == f"1 of {one['n']}"
    assert found["searched"]["text"] == found["second"]["text"]
    assert (found["nothing"]["count"], found["nothing"]["shown"]) == (f"0 of {one['n']}", 0)
    assert found["other"]["link"].startswith("#m/L2/n24/seed1/")
