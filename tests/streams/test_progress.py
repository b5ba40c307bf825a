from lamaml.streams._progress import progress_bar


def test_bar_is_on_standard_error_where_a_person_looks(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress_bar("fetching", 10) as bar:
        bar.advance(4)
        bar.reach(5, 10)
    written = capsys.readouterr()
    assert "fetching" in written.err
    assert "50%" in written.err
    assert written.out == ""


def test_nothing_is_written_elsewhere(capsys, monkeypatch):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    with progress_bar("fetching", 10) as bar:
        bar.advance(10)
    assert capsys.readouterr() == ("", "")
