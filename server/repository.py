"""Which models are served: the highest version in the folder of each."""

import asyncio
import contextlib
import gc
import os
import re

from absl import logging

from server import errors, versions

_NAME = r"[A-Za-z0-9_.-]+"
_UNLOAD_POLL_S = 0.05


def parse(flags):
    """Models as of --model.

    Args:
        flags: list of str, NAME=FOLDER.
    Returns:
        dict of name → folder.
    Raises:
        ValueError: one is not of this form, or two have one name.
    """
    folders = {}
    for flag in flags:
        name, _, folder = flag.partition("=")
        if not re.fullmatch(_NAME, name) or not folder:
            raise ValueError(
                f"--model={flag} must be NAME=FOLDER, with a name of letters, digits, "
                "dots, dashes and underscores"
            )
        if name in folders:
            raise ValueError(
                f"two models are called {name}: {folders[name]} and {folder}; choose "
                "another name for one"
            )
        folders[name] = folder
    return folders


def find_versions(folder):
    """The SavedModels in a folder of numbered versions.

    Args:
        folder: str; may be a SavedModel itself, then it is version 1, or the number
            that it is called.
    Returns:
        dict of number → path.
    Raises:
        OSError: there is no such folder.
    """
    if _is_saved_model(folder):
        name = os.path.basename(os.path.abspath(folder))
        return {int(name) if _is_number(name) else 1: folder}
    paths = {
        int(name): os.path.join(folder, name)
        for name in os.listdir(folder)
        if _is_number(name)
    }
    return {number: path for number, path in paths.items() if _is_saved_model(path)}


def _is_number(name):
    return re.fullmatch("[0-9]{1,18}", name) is not None  # of 64 bits


def _is_saved_model(path):
    return os.path.isfile(os.path.join(path, "saved_model.pb"))


def _contents(path):
    """What tells whether files came or changed: their names, sizes and times."""
    with contextlib.suppress(OSError):
        return [
            (file, (stat := os.stat(os.path.join(place, file))).st_size, stat.st_mtime)
            for place, _, files in sorted(os.walk(path))
            for file in sorted(files)
        ]
    return None  # Files go while we look.


class _Model:
    """A model's folder, and its versions as far as they are known.

    Attributes:
        version: versions.Version or None, the one that is served.
        states: dict of number → (name of a state of TensorFlow Serving, sentence).
    """

    def __init__(self, name, folder):
        self.name, self.folder = name, folder
        self.version, self.states = None, {}
        self._failed = {}  # number → contents of what could not be loaded

    def load_highest(self):
        """Loads the highest version that can be loaded, unless it is served.

        What cannot be loaded is told, and tried again when its files have changed.

        Returns:
            versions.Version, a new one, or None.
        Raises:
            OSError: the folder is not there.
            ValueError: nothing is served and there is none, or none can be loaded.
        """
        found = find_versions(self.folder)
        if not found and self.version:
            return None
        if not found:
            raise ValueError(
                f"{self.folder} has no SavedModel for --model={self.name}: expected "
                "saved_model.pb in it or in a folder in it whose name is a number"
            )
        for number in sorted(found, reverse=True):
            if self.version and number == self.version.number:
                return None
            contents = _contents(found[number])
            if self._failed.get(number, ()) == contents:
                continue
            self.states[number] = ("LOADING", "")
            try:
                version = versions.Version(self.name, number, found[number])
            except ValueError as error:
                self._failed[number] = contents
                self.states[number] = ("END", str(error))
                if not self.version and number == min(found):
                    raise
                logging.error("%s", error)
                continue
            self.states[number] = ("AVAILABLE", "")
            return version
        return None


class Repository:
    """Loads models and finds them by name and version.

    Args:
        folders: dict of name → folder.
    Attributes:
        is_loading: bool, whether a thread loads a version.
    Raises:
        ValueError, OSError: a model cannot be loaded.
    """

    def __init__(self, folders):
        self.is_loading = False
        self._models = {name: _Model(name, path) for name, path in folders.items()}
        for model in self._models.values():
            self._serve(model, model.load_highest())

    @property
    def names(self):
        """list of str, the models in the order of `folders`."""
        return list(self._models)

    def find(self, name, number=None):
        """The version that is served.

        Args:
            name: str.
            number: int, None for whichever is.
        Returns:
            versions.Version.
        Raises:
            errors.RequestError: it is not served.
        """
        version = self._model(name).version
        if number not in (None, version.number):
            raise errors.not_found(
                f"version {number} of model {name} is not served; version "
                f"{version.number} is"
            )
        return version

    def states(self, name, number=None):
        """What is known of a model's versions.

        Args:
            name: str.
            number: int, None for all.
        Returns:
            dict of number → (state, sentence), highest first.
        Raises:
            errors.RequestError: there is no such model or version.
        """
        states = self._model(name).states
        if number is not None and number not in states:
            raise errors.not_found(f"model {name} has no version {number}")
        chosen = sorted(states, reverse=True) if number is None else [number]
        return {number: states[number] for number in chosen}

    def _model(self, name):
        if name not in self._models:
            raise errors.not_found(
                f"there is no model {errors.quoted(name)}; there are "
                f"{', '.join(self._models)}"
            )
        return self._models[name]

    async def watch(self, poll_s):
        """Serves new versions as they appear, for ever.

        What cannot be loaded is left alone until its files change; the version before
        stays.

        Args:
            poll_s: float, seconds between two looks.
        """
        while True:
            await asyncio.sleep(poll_s)
            for model in self._models.values():
                try:
                    version = await asyncio.to_thread(self._load, model)
                except OSError:
                    continue  # The folder is away; it may come back.
                if version:
                    await self._unload(model, self._serve(model, version))

    def _load(self, model):
        self.is_loading = True
        try:
            return model.load_highest()
        finally:
            self.is_loading = False

    def _serve(self, model, version):
        """Answers from a version from now on; returns the one before."""
        before, model.version = model.version, version
        logging.info(
            "model %s, version %d, from %s: %s; warmed up by %d requests",
            model.name,
            version.number,
            version.path,
            ", ".join(map(str, version.signatures.values())),
            version.num_warm_up_requests,
        )
        return before

    async def _unload(self, model, version):
        """Waits until a version's requests are answered."""
        number = version.number
        model.states[number] = ("UNLOADING", "")
        while version.num_users:
            await asyncio.sleep(_UNLOAD_POLL_S)
        model.states[number] = ("END", "")
        del version
        gc.collect()  # What TensorFlow loads refers to itself.
        logging.info("model %s, version %d is unloaded", model.name, number)
