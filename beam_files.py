"""Text and record files on whatever file systems Apache Beam reaches."""

from collections.abc import Iterable
from typing import IO, Any

import apache_beam as beam
from apache_beam.io import filebasedsink, filesystem
from apache_beam.io.filesystems import FileSystems

from data import filesystem as local_filesystem
from data import text_files


def open_text(path: str) -> IO[bytes]:
    """Opens a file to read, also where Beam alone reaches (gs://, s3://, hdfs://)."""
    if "://" not in path:
        return text_files.open_local(path)
    # Its suffix would have Beam unpack it, and `text_files` does.
    as_it_is = filesystem.CompressionTypes.UNCOMPRESSED
    return FileSystems.open(path, compression_type=as_it_is)


def find(patterns: str) -> list[str]:
    """As `text_files.find`; where Beam alone reaches, a folder's name ends in /."""
    names = [name.strip() for name in patterns.split(",") if name.strip()]
    local = [name for name in names if "://" not in name]
    found = text_files.find(",".join(local)) if local or not names else []
    for name in set(names) - set(local):
        is_folder = name.endswith("/")
        (result,) = FileSystems.match([f"{name}**" if is_folder else name])
        paths = [entry.path for entry in result.metadata_list if entry.size_in_bytes]
        paths = [path for path in paths if not local_filesystem.is_hidden(path)]
        if is_folder:
            paths = [path for path in paths if path.endswith(text_files.SUFFIXES)]
        if not paths:
            raise FileNotFoundError(f"no file with text matches {name!r}")
        found += paths
    return sorted(set(found))


def exist(paths: Iterable[str]) -> list[str]:
    """Those of the files that are there."""
    return [path for path in paths if FileSystems.exists(path)]


class _RecordSink(filebasedsink.FileBasedSink):
    """Writes records, given as the bytes that they are in a TFRecord file."""

    def write_encoded_record(self, file_handle: IO[bytes], encoded_value: bytes):
        file_handle.write(encoded_value)

    def pre_finalize(self, init_result: str, writer_results: Iterable[str]):
        """Beam calls this once, with the files that hold records, before any of them
        gets its name; afterwards it would add empty ones."""
        files = list(writer_results)
        if len(files) < self.num_shards:
            raise ValueError(
                f"every file needs a record, but only {len(files)} of "
                f"{self.num_shards} files got some; name fewer files"
            )
        return super().pre_finalize(init_result, files)


def write(records: Any, outputs: tuple[str, ...], num_shards: int | None) -> str:
    """Adds the writing of the files to the pipeline; returns how their names begin.

    Args:
        records: PCollection of bytes, each as it stands in a TFRecord file.
        outputs: paths of the files, see `pretraining_flags.output_files`.
        num_shards: None for a single file whose name has no number.
    """
    prefix, suffix, template = outputs[0], "", ""
    if num_shards:
        template = "-SSSSS-of-NNNNN"
        prefix, _, suffix = prefix.rpartition(f"-00000-of-{num_shards:05d}")
    sink = _RecordSink(
        prefix, beam.coders.BytesCoder(), suffix, num_shards or 1, template
    )
    records | "Write" >> beam.io.Write(sink)
    return prefix
