"""Status of versions; the metadata are compared with the file in rpc_test.py."""

import pytest
from tensorflow_serving.apis import get_model_status_pb2

from server import errors, metadata


class States:
    """A repository of what is known of one model."""

    def states(self, name, number):
        assert (name, number) == ("m", None)
        return {2: ("END", "it is damaged"), 1: ("AVAILABLE", "")}


def test_states_and_errors():
    second, first = metadata.status(States(), "m").model_version_status
    state = get_model_status_pb2.ModelVersionStatus
    assert (second.version, second.state) == (2, state.END)
    assert second.status.error_message == "it is damaged"
    assert second.status.error_code != 0
    assert (first.version, first.state) == (1, state.AVAILABLE)
    assert first.status.error_code == 0


@pytest.mark.parametrize("fields", [[], ["other"], ["signature_def", "other"]])
def test_metadata_that_there_is_not(fields):
    with pytest.raises(errors.RequestError, match="signature_def"):
        metadata.response(None, fields)
