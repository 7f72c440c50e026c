"""Tests the classes of ImageNet."""

import hashlib
import json

from litebnn.zoo.labels import imagenet_classes

# The MD5 of imagenet_class_index.json, with which keras.applications.imagenet_utils checks the list that it fetches.
KERAS_CLASS_INDEX = "c2c37ea517e94d9795004a39431a14cb"


def test_classes_are_in_the_order_of_their_synsets() -> None:
    classes = imagenet_classes()
    assert len(classes) == 1000
    assert [each.synset for each in classes] == sorted({each.synset for each in classes})
    assert (classes[0].synset, classes[0].name) == ("n01440764", "tench")
    assert (classes[292].synset, classes[292].name) == ("n02129604", "tiger")
    assert (classes[999].synset, classes[999].name) == ("n15075141", "toilet tissue")


def test_classes_are_keras_own() -> None:
    classes = enumerate(imagenet_classes())
    index = {str(number): [each.synset, each.name.replace(" ", "_")] for number, each in classes}
    assert hashlib.md5(json.dumps(index).encode()).hexdigest() == KERAS_CLASS_INDEX
