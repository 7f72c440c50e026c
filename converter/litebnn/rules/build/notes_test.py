import numpy as np

from litebnn.rules.build.notes import Notes
from tests.support.float_models import FloatModel, sign_weights


def test_reasons_of_earlier_rounds_are_taken_back_and_those_of_earlier_phases_stay() -> None:
    model = FloatModel()
    built = model.model(model.conv(model.input(1, 4, 4, 32), sign_weights(np.random.default_rng(0), 8, 3, 3, 32)))
    [layer], notes = built.graphs[0].ops, Notes(built)
    notes.left_alone(layer, "it is of the phase before")
    notes.keep_reasons()
    for reasons in (["it held once"], ["it holds", "it is of the phase before"], ["it holds"]):
        notes.start_round()
        for reason in reasons:
            notes.left_alone(layer, reason)
    assert list(notes.layers[0].reasons) == ["it is of the phase before", "it holds"]
