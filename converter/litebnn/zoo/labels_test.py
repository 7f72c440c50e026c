"""The classes of ImageNet."""

from litebnn.zoo.labels import imagenet_classes


def test_classes_are_in_the_order_of_their_synsets() -> None:
    classes = imagenet_classes()
    assert len(classes) == 1000
    assert [each.synset for each in classes] == sorted({each.synset for each in classes})
    assert (classes[0].synset, classes[0].name) == ("n01440764", "tench")
    assert (classes[292].synset, classes[292].name) == ("n02129604", "tiger")
    assert (classes[999].synset, classes[999].name) == ("n15075141", "toilet tissue")
