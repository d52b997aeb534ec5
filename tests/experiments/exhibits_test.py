"""What stands beside the paper's tables is what is run."""

import pytest

from experiments import exhibits, miniatures


@pytest.mark.parametrize("exhibit", exhibits.EXHIBITS, ids=lambda e: e.title)
def test_what_the_page_asks_for_is_run(exhibit):
    made = [
        run
        for suite, make in miniatures.SUITES.items()
        for run in make(range(miniatures.NUM_SEEDS[suite]))
    ]
    assert len({run.key for run in made}) == len(made)
    there = {
        (run.experiment, run.variant, run.task, score)
        for run in made
        for score in run.scores
    }
    for measured in exhibit.measured:
        tasks = {key[2:] for key in there if key[0] == measured.experiment}
        assert set(measured.columns.values()) <= tasks
        for claim in measured.claims:
            for variant in (claim.better, claim.worse):
                assert (measured.experiment, variant, claim.task, claim.score) in there
    for row in exhibit.published:
        assert len(row) == len(exhibit.header)
