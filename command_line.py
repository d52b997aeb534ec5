"""The frame every script runs in: flags, and errors as one sentence.

Without TensorFlow, for the scripts that do without it.
"""

import errno
import gc
import math
import os
import re
import select
import signal
import sys

from absl import app, flags, logging


def run(main, define_flags, takes_rest=False):
    """Defines the flags, parses the command line, runs `main`.

    An unknown flag is refused with the nearest name. An error that a person can mend
    becomes one line on stderr and exit status 1; `--verbosity=1` shows where it came
    from. Where nobody reads stdout any more (`| head`), it ends as programs do then.

    Args:
        main: function of no arguments, or of one, see `takes_rest`.
        define_flags: function of no arguments.
        takes_rest: whether `main` takes one: the list of arguments after `--`, which
            are for another program.
    """
    define_flags()
    for module in (__name__, "common_flags"):  # so that --help shows them
        for flag in flags.FLAGS.get_key_flags_for_module(module):
            flags.FLAGS.register_key_flag_for_module(sys.argv[0], flag)
    script = os.path.splitext(os.path.basename(sys.argv[0]))[0]

    def guarded(argv):
        try:
            rest = argv[1:]
            if rest and not (takes_rest and rest[0].startswith("-")):
                raise ValueError(
                    f"unexpected argument {rest[0]!r}; flags start with --"
                )
            _log_plainly()
            _check_numbers()
            # What is loaded now stays. Python need not search it for garbage, at the
            # end (0.02 s) or in forks, which would copy what they search.
            gc.freeze()
            main(rest) if takes_rest else main()
            sys.stdout.flush()
        except Exception as error:
            if logging.level_debug() or _is_unread(error) or not is_users(error):
                raise
            print(f"{script}: error: {sentence(error)}", file=sys.stderr)
            sys.exit(1)
        except KeyboardInterrupt:
            print(f"{script}: interrupted", file=sys.stderr)
            sys.exit(130)

    def parse(argv):
        try:
            return flags.FLAGS(argv)
        except flags.Error as error:
            print(f"{script}: error: {_about_flags(error)}", file=sys.stderr)
            sys.exit(1)
        except SystemExit:  # of --help, which is no failure, as absl has it
            sys.exit(0)
        finally:
            sys.stdout.flush()  # --help

    try:
        app.run(guarded, flags_parser=parse)
    except BrokenPipeError as error:
        if not _is_unread(error):
            raise
        # Python would flush stdout once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)


def _is_unread(error):
    """Whether it says that nobody reads stdout any more."""
    if not isinstance(error, BrokenPipeError):
        return False
    # It may also be of another pipe, such as that of a process of ours.
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return bool(poll.poll(0))


def _about_flags(error):
    """What absl says of flags, without Python's words for it."""
    text = sentence(error)
    needed = r"flag --(\w+)=None: Flag --\1 must have a value other than None\."
    text = re.sub(needed, r"give --\1;", text).removesuffix(";")
    for cause, kind in (
        ("invalid literal for int", "whole number"),
        ("could not convert string to float", "number"),
    ):
        said = rf"flag --(\w+)=(.*?): {cause}.*"
        text = re.sub(said, rf"--\1 must be a {kind}, got '\2'", text)
    return text


def _log_plainly():
    """Shows what is logged as it is, from level info on."""
    if not flags.FLAGS["verbosity"].present:
        logging.set_verbosity(logging.INFO)
    logging.get_absl_handler().setFormatter(None)


def _check_numbers():
    """Refuses inf and nan, which are within any bounds of a flag."""
    for name, value in values().items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"--{name} must be a finite number, got {value}")


def is_users(error):
    """Whether it is about what a person can mend: flags, files, data, a full disk.

    Numbers far too large, and what does not fit into the memory, count as well.
    """
    tf = sys.modules.get("tensorflow")
    kinds = (ValueError, OSError, OverflowError, MemoryError) + (
        (tf.errors.OpError,) if tf else ()
    )
    return isinstance(error, kinds)


# What to do about what the system says, where its words do not tell.
_HINTS = {
    errno.EEXIST: "; a folder is needed there: name another, or move the file",
    errno.ENOTDIR: "; a folder is needed there, or on the way there, which is a file",
    errno.EISDIR: "; a file is needed there: name one",
    errno.ENOSPC: "; make room and repeat the command",
}


def sentence(error):
    """What an exception says, on one line."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        hint = _HINTS.get(error.errno, "")
        return f"{error.filename}: {error.strerror}{hint}"
    # TensorFlow's have one without the stack, but with names of its operations.
    text = getattr(error, "message", error)
    text = re.sub(r"\{\{function_node .*?\}\} | \[Op:\w+\]", "", str(text))
    if isinstance(error, OverflowError):
        text = f"a number is too large to compute with; give smaller ones ({text})"
    if isinstance(error, MemoryError):
        text = f"the memory is not enough; give smaller numbers ({text})"
    return " ".join(str(text).split())


def values():
    """dict of name → value of all flags that the script defines or adopts."""
    script = flags.FLAGS.get_key_flags_for_module(sys.argv[0])
    return {flag.name: flag.value for flag in script}


def check_actions(values):
    """Refuses flags that ask for nothing to be done.

    Args:
        values: dict of name → value.

    Raises:
        ValueError: names the flags of which one is needed.
    """
    actions = ("do_train", "do_eval", "do_predict", "do_export", "question")
    names = [name for name in actions if name in values]
    if not any(values[name] for name in names):
        *others, last = (f"--{name}" for name in names)
        raise ValueError(f"nothing to do: give {', '.join(others)} or {last}")


def check_outputs(paths, inputs):
    """Refuses files to write that would destroy others or are none.

    Args:
        paths: list of str, from --output_file.
        inputs: list of the files that are read, None for those that are not given.

    Raises:
        ValueError: a file is an input or a folder.
    """
    sources = {os.path.realpath(path) for path in inputs if path}
    for path in paths:
        if os.path.realpath(path) in sources:
            raise ValueError(f"{path} is an input file; choose another --output_file")
        if os.path.isdir(path) or not os.path.basename(path):
            raise ValueError(f"{path} is a folder; --output_file must name a file")


def prepare_output(path, inputs, overwrite):
    """Makes the folder of a file to write, unless a file would be lost.

    Args:
        path: str, the --output_file.
        inputs: as in `check_outputs`.
        overwrite: bool, whether the file may be there.

    Raises:
        ValueError: as `check_outputs`; or the file is there.
    """
    check_outputs([path], inputs)
    if os.path.exists(path) and not overwrite:
        raise ValueError(
            f"{path} exists; choose another --output_file or pass --overwrite"
        )
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)


def define_text():
    """How text becomes ids."""
    flags.DEFINE_string("vocab_file", None, "WordPiece vocabulary, one entry a line.")
    flags.DEFINE_bool(
        "do_lower_case",
        True,
        "Lower-case and strip accents: True for uncased models, False for cased ones.",
    )


def parse_layers(text, num_layers):
    """The numbers in --layers; ValueError if there is no such layer."""
    try:
        layers = [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(
            f"--layers must be numbers separated by commas, got {text!r}"
        ) from None
    for layer in layers:
        if not -num_layers <= layer < num_layers:
            raise ValueError(
                f"--layers names layer {layer}, but the model has {num_layers}: 0 to "
                f"{num_layers - 1} from the first, or -1 to -{num_layers} from the last"
            )
    return layers
