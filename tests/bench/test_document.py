"""docs/benchmarks.md shows the published figures."""

from bench import document, store


def test_the_page_is_written_from_the_published_figures():
    published = store.load(store.PUBLISHED)
    assert len(published) > 100
    assert document.PAGE.read_text() == document.page(published), "run python -m bench.document"


def test_a_machine_without_figures_of_its_own_begins_with_the_published_ones(monkeypatch, tmp_path):
    monkeypatch.setattr(store, "RESULTS", tmp_path / "bench.json")
    assert store.earlier_rows() == store.load(store.PUBLISHED)
    own = [{"name": "journal", "figure": "a"}]
    store.save(own, store.RESULTS)
    assert store.earlier_rows() == own
