"""Status and metadata of models, as TensorFlow Serving's messages."""

from tensorflow_serving.apis import get_model_metadata_pb2, get_model_status_pb2

from server import errors

_FIELD = "signature_def"  # the only one of metadata that there is


def status(repository, name, number=None):
    """GetModelStatusResponse of one version of a model, or of all.

    Args:
        repository: repository.Repository.
        name: str.
        number: int or None.
    Raises:
        errors.RequestError: there is no such model or version.
    """
    response = get_model_status_pb2.GetModelStatusResponse()
    for version, (state, sentence) in repository.states(name, number).items():
        entry = response.model_version_status.add(
            version=version,
            state=get_model_status_pb2.ModelVersionStatus.State.Value(state),
        )
        entry.status.error_message = sentence
        entry.status.error_code = 2 if sentence else 0  # UNKNOWN or OK
    return response


def signature_map(version):
    """SignatureDefMap of a versions.Version."""
    return get_model_metadata_pb2.SignatureDefMap(
        signature_def={
            name: signature.definition for name, signature in version.signatures.items()
        }
    )


def response(version, fields):
    """GetModelMetadataResponse.

    Args:
        version: versions.Version.
        fields: list of str, which metadata is wanted.
    Raises:
        errors.RequestError: there is no such metadata.
    """
    if not fields or set(fields) != {_FIELD}:
        raise errors.invalid(f'metadata_field must be "{_FIELD}"')
    message = get_model_metadata_pb2.GetModelMetadataResponse()
    message.model_spec.name = version.model_name
    message.model_spec.version.value = version.number
    message.metadata[_FIELD].Pack(signature_map(version))
    return message
