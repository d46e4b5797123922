"""Names that are not known: the nearest one is offered, or all of them. Numbers have the noun that fits."""

from rnnbench.spelling import absent, count, did_you_mean, first_few, hint, listed, near_path

NAMES = ("hidden", "input")


def test_the_nearest_name_is_offered():
    assert hint("hiden", NAMES) == did_you_mean("hiden", NAMES) == "did you mean 'hidden'?"


def test_where_no_name_is_near_all_are_named():
    assert hint("batch", NAMES) == "expected one of hidden, input"
    assert did_you_mean("batch", NAMES) == ""


def test_a_short_word_with_another_first_letter_is_another_word():
    assert did_you_mean("gpu", ["cpu", "cuda"]) == ""
    assert did_you_mean("cup", ["cpu", "cuda"]) == "did you mean 'cpu'?"
    assert did_you_mean("Cpu", ["cpu", "cuda"]) == "did you mean 'cpu'?"


def test_of_many_names_those_with_the_word_and_the_nearest_are_named():
    many = [f"compiler-{number}-lost-state" for number in range(50)] + ["other-gru"]
    told = hint("GRU", many)
    assert told.startswith("the nearest of 51 names are other-gru, compiler-")
    assert told.count(",") == 4


def test_of_a_path_that_is_absent_the_name_beside_it_is_offered(tmp_path):
    (tmp_path / "model.onnx").touch()
    assert near_path(tmp_path / "modl.onnx") == "did you mean 'model.onnx'?"
    assert near_path(tmp_path / "zebra") == near_path(tmp_path / "none" / "model.onnx") == ""
    assert near_path(tmp_path / "a\0b" / "model.onnx") == ""


def test_a_suffix_alone_makes_no_name_near(tmp_path):
    (tmp_path / "short.yaml").touch()
    assert near_path(tmp_path / "nosuch.yaml") == ""
    assert near_path(tmp_path / "shorts.yaml") == near_path(tmp_path / "short") == "did you mean 'short.yaml'?"


def test_a_link_that_leads_nowhere_is_told_and_its_own_name_is_not_offered(tmp_path):
    (tmp_path / "model.onnx").symlink_to("moved.onnx")
    assert absent(tmp_path / "model.onnx") == "is a link to moved.onnx, which does not exist; correct the link"
    assert absent(tmp_path / "modl.onnx") == "does not exist; did you mean 'model.onnx'?"
    assert absent(tmp_path / "none" / "x") == "does not exist; correct its path"


def test_a_number_has_the_noun_that_fits():
    assert [count(number, "trial") for number in (0, 1, 20_000)] == ["0 trials", "1 trial", "20,000 trials"]
    assert [count(number, "process", "processes") for number in (1, 3)] == ["1 process", "3 processes"]


def test_of_many_names_the_first_are_listed():
    assert listed(["a", "b", "c", "d"], 2) == "a, b and 2 more"
    assert (listed(["a", "b"], 2), listed([], 2)) == ("a, b", "")


def test_of_many_sentences_of_one_kind_the_first_are_told_and_the_number_of_the_others():
    def told(number):
        return first_few([f"why {index}" for index in range(number)], lambda more: f"{count(more, 'more file')}")

    assert told(0) == ()
    assert told(5) == ("why 0", "why 1", "why 2", "why 3", "why 4")
    assert told(6) == (*told(5), "1 more file")
    assert told(1705)[-1] == "1,700 more files"
